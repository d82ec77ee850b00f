// The powers of two that the rows of A, or the columns of B, were divided by when the operand was
// packed for a matrix unit (mainloop/scale.wgsl).
// needs: nothing
// provides: X_EACH X_POWERS x_power x_powers

const X_POWERS: u32 = 15u; //param
// Whether each entry has its powers.
const X_EACH: bool = false; //param

@group(0) @binding(X_POWERS) var<storage, read> x_powers: array<u32>;

// Of line x of an entry, as two factors. Those of an entry fill whole vectors.
fn x_power(entry: u32, x: u32, extent: u32) -> vec2<f32> {
    let first = select(0u, entry * ((extent + 3u) / 4u * 4u), X_EACH);
    let halves = x_powers[first + x];
    return bitcast<vec2<f32>>(vec2<u32>(halves << 16u, halves & 0xffff0000u));
}
