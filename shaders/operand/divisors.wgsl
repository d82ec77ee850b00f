// The powers of two that the rows of A, or the columns of B, were divided by when the operand was
// packed for a matrix unit (mainloop/scale.wgsl).
// needs: nothing
// provides: X_EACH X_POWERS x_power x_power4 x_powers

const X_POWERS: u32 = 15u; //param
// Whether each entry has its powers.
const X_EACH: bool = false; //param

@group(0) @binding(X_POWERS) var<storage, read> x_powers: array<vec4<u32>>;

// Power of line x of an entry, as two factors: the upper halves of two f32.
fn x_power(entry: u32, x: u32, extent: u32) -> u32 {
    let first = select(0u, entry * ((extent + 3u) / 4u), X_EACH);
    return x_powers[first + x / 4u][x % 4u];
}

// Powers of the four lines among which line x is. The powers of an entry fill whole fours.
fn x_power4(entry: u32, x: u32, extent: u32) -> vec4<u32> {
    let first = select(0u, entry * ((extent + 3u) / 4u), X_EACH);
    return x_powers[first + x / 4u];
}
