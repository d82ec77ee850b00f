// Epilogue of a second finishing pass: the first left everything but the residual in scratch
// (keep.wgsl).
// needs: params residual_load4_part
// provides: c_index epilogue

fn c_index(batch: u32, row: u32, col: u32) -> u32 {
    return params.c_offset + batch * params.c_batch + row * params.c_ld + col;
}

// For n neighbouring columns of a row.
fn epilogue(batch: u32, group: u32, row: u32, col: u32, n: u32, x: vec4<f32>) -> vec4<f32> {
    let first = params.residual_offset + batch * params.residual_batch;
    return x + residual_load4_part(first + row * params.residual_ld + col, n);
}
