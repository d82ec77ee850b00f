// The powers of an operand whose lines were not divided, beside one whose lines were: all are 1.
// needs: nothing
// provides: x_power

fn x_power(entry: u32, x: u32, extent: u32) -> vec2<f32> {
    return vec2<f32>(1.0);
}
