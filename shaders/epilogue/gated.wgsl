// Epilogue with a gate, in place of linear.wgsl: y = (alpha · x + beta · C + bias) ·
// activation(gate), where the gate takes the residual's place. In linear.wgsl it would be a branch,
// and a branch that is never taken may cost registers (undivided.wgsl).
// needs: activation bias_base bias_load c_base c_load4_masked params residual_base
//        residual_load4_masked
// provides: BIAS_ALONG_M USE_BETA USE_BIAS c_index epilogue

const USE_BETA: bool = false; //param
const BIAS_ALONG_M: bool = false; //param
const USE_BIAS: bool = false; //param

fn c_index(batch: u32, row: u32, col: u32) -> u32 {
    return c_base(batch) + row * params.c_ld + col;
}

// For n neighbouring columns of a row; what lies beyond them is neither read nor meant.
fn epilogue(batch: u32, group: u32, row: u32, col: u32, n: u32, x: vec4<f32>) -> vec4<f32> {
    var y = params.alpha * x;
    if USE_BETA && params.beta != 0.0 {
        y += params.beta * c_load4_masked(c_index(batch, row, col), n);
    }
    if USE_BIAS {
        let first = bias_base(group) + select(col, row, BIAS_ALONG_M) * params.bias_ld;
        let step = select(params.bias_ld, 0u, BIAS_ALONG_M);
        y.x += bias_load(first);
        if n > 1u { y.y += bias_load(first + step); }
        if n > 2u { y.z += bias_load(first + 2u * step); }
        if n > 3u { y.w += bias_load(first + 3u * step); }
    }
    let gate = residual_load4_masked(residual_base(batch) + row * params.residual_ld + col, n);
    return y * activation(gate);
}
