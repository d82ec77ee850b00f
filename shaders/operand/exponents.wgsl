// The powers of two that the rows of A, or the columns of B, were divided by when the operand was
// packed for a matrix unit (mainloop/scale.wgsl).
// needs: nothing
// provides: X_EACH X_EXPONENTS x_exponent x_exponents x_exponents_from

const X_EXPONENTS: u32 = 15u; //param
// Whether each entry has its powers.
const X_EACH: bool = false; //param

@group(0) @binding(X_EXPONENTS) var<storage, read> x_exponents: array<vec4<i32>>;

// Of line x of an entry, a multiple of 4, and the next ones. Those of an entry fill whole vectors.
fn x_exponents_from(entry: u32, x: u32, extent: u32) -> vec4<i32> {
    return x_exponents[select(0u, entry * ((extent + 3u) / 4u), X_EACH) + x / 4u];
}

fn x_exponent(entry: u32, x: u32, extent: u32) -> i32 {
    return x_exponents_from(entry, x, extent)[x % 4u];
}
