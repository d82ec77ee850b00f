// Epilogue of a second finishing pass: the first left everything but the gate in scratch
// (keep.wgsl).
// needs: activation c_base params residual_base residual_load4_masked
// provides: c_index epilogue

fn c_index(batch: u32, row: u32, col: u32) -> u32 {
    return c_base(batch) + row * params.c_ld + col;
}

// For n neighbouring columns of a row.
fn epilogue(batch: u32, group: u32, row: u32, col: u32, n: u32, x: vec4<f32>) -> vec4<f32> {
    let gate = residual_load4_masked(residual_base(batch) + row * params.residual_ld + col, n);
    return x * activation(gate);
}
