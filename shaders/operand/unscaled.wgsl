// The powers of an operand whose lines were not divided, beside one whose lines were: both factors
// of all are 1.
// needs: nothing
// offers: x_power x_power4

fn x_power(entry: u32, x: u32, extent: u32) -> u32 {
    return 0x3f803f80u;
}

fn x_power4(entry: u32, x: u32, extent: u32) -> vec4<u32> {
    return vec4<u32>(0x3f803f80u);
}
