// The exponents of an operand whose lines were not divided, beside one whose lines were: all are 0.
// needs: nothing
// provides: x_exponent

fn x_exponent(entry: u32, x: u32, extent: u32) -> i32 {
    return 0;
}
