// The end of an epilogue with a gate, which takes the residual's place: y · activation(gate). In
// added.wgsl it would be a branch, and a branch that is never taken may cost registers
// (undivided.wgsl).
// needs: activation params residual_base residual_load4_masked
// provides: C_PER ended

// Columns that make one of C.
const C_PER: u32 = 1u;

// Ends n neighbouring columns of a row.
fn ended(batch: u32, row: u32, col: u32, n: u32, y: vec4<f32>) -> vec4<f32> {
    let gate = residual_load4_masked(residual_base(batch) + row * params.residual_ld + col, n);
    return y * activation(gate);
}
