// The end of an epilogue whose even columns are gates: y[1] · activation(y[0]) for each pair. C has
// half as many columns.
// needs: activation
// provides: C_PER ended

// Columns that make one of C.
const C_PER: u32 = 2u;

// Ends n neighbouring columns of a row, n / 2 of C.
fn ended(batch: u32, row: u32, col: u32, n: u32, y: vec4<f32>) -> vec4<f32> {
    let gates = activation(vec4<f32>(y.x, y.z, 0.0, 0.0));
    return vec4<f32>(y.y * gates.x, y.w * gates.y, 0.0, 0.0);
}
