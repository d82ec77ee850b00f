// The powers of two that the rows of A, or the columns of B, were divided by when the operand was
// packed for a matrix unit (mainloop/scale.wgsl).
// needs: nothing
// provides: X_EACH X_EXPONENTS x_exponent x_exponents

const X_EXPONENTS: u32 = 15u; //param
// Whether each entry has its powers.
const X_EACH: bool = false; //param

@group(0) @binding(X_EXPONENTS) var<storage, read> x_exponents: array<i32>;

// Of line x of an entry. Those of an entry fill whole vectors.
fn x_exponent(entry: u32, x: u32, extent: u32) -> i32 {
    let first = select(0u, entry * ((extent + 3u) / 4u * 4u), X_EACH);
    return x_exponents[first + x];
}
