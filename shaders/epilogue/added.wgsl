// The end of an epilogue: activation(y) + residual.
// needs: activation params residual_base residual_load4_masked
// provides: C_PER USE_RESIDUAL ended

const USE_RESIDUAL: bool = false; //param

// Columns that make one of C.
const C_PER: u32 = 1u;

// Ends n neighbouring columns of a row.
fn ended(batch: u32, row: u32, col: u32, n: u32, y: vec4<f32>) -> vec4<f32> {
    var sum = activation(y);
    if USE_RESIDUAL {
        sum += residual_load4_masked(residual_base(batch) + row * params.residual_ld + col, n);
    }
    return sum;
}
