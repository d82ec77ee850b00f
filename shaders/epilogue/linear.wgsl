// Epilogue: y = activation(alpha · x + beta · C + bias) + residual. C is read only when beta is not 0.

const USE_BETA: bool = false; //param
const BIAS_ALONG_M: bool = false; //param
const USE_BIAS: bool = false; //param
const USE_RESIDUAL: bool = false; //param

fn c_index(batch: u32, row: u32, col: u32) -> u32 {
    return params.c_offset + batch * params.c_batch + row * params.c_ld + col;
}

fn epilogue(batch: u32, group: u32, row: u32, col: u32, x: f32) -> f32 {
    var y = params.alpha * x;
    if USE_BETA {
        y += params.beta * c_load(c_index(batch, row, col));
    }
    if USE_BIAS {
        y += bias_load(params.bias_offset + group * params.bias_batch + select(col, row, BIAS_ALONG_M) * params.bias_ld);
    }
    y = activation(y);
    if USE_RESIDUAL {
        y += residual_load(params.residual_offset + batch * params.residual_batch + row * params.residual_ld + col);
    }
    return y;
}
