// The exponents of an operand whose lines were not divided: all are 0.
// needs: nothing
// provides: X_SCALED x_exponent

const X_SCALED: bool = false;

fn x_exponent(entry: u32, x: u32, extent: u32) -> i32 {
    return 0;
}
