// The exponents of an operand whose lines were not divided, beside one whose lines were: all are 0.
// needs: nothing
// provides: x_exponent x_exponents_from

fn x_exponent(entry: u32, x: u32, extent: u32) -> i32 {
    return 0;
}

fn x_exponents_from(entry: u32, x: u32, extent: u32) -> vec4<i32> {
    return vec4<i32>();
}
