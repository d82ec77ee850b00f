// Epilogue of a second finishing pass, in place of linear.wgsl: the first left everything but the
// end in scratch (keep.wgsl).
// needs: c_base ended params
// provides: c_index epilogue

fn c_index(batch: u32, row: u32, col: u32) -> u32 {
    return c_base(batch) + row * params.c_ld + col;
}

// Ends n neighbouring columns of a row.
fn epilogue(batch: u32, group: u32, row: u32, col: u32, n: u32, x: vec4<f32>) -> vec4<f32> {
    return ended(batch, row, col, n, x);
}
