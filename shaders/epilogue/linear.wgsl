// Epilogue: alpha · x + beta · C + bias, and its end: added.wgsl, gated.wgsl or paired.wgsl. C is
// read only if beta is not 0, which may be known on the device alone.
// needs: C_PER bias_base bias_load c_base c_load4_masked ended params
// provides: BIAS_ALONG_M USE_BETA USE_BIAS c_index epilogue

const USE_BETA: bool = false; //param
const BIAS_ALONG_M: bool = false; //param
const USE_BIAS: bool = false; //param

fn c_index(batch: u32, row: u32, col: u32) -> u32 {
    return c_base(batch) + row * params.c_ld + col / C_PER;
}

// Takes n neighbouring columns of a row; components beyond them are not read and mean nothing.
fn epilogue(batch: u32, group: u32, row: u32, col: u32, n: u32, x: vec4<f32>) -> vec4<f32> {
    var y = params.alpha * x;
    if USE_BETA && params.beta != 0.0 {
        y += params.beta * c_load4_masked(c_index(batch, row, col), n);
    }
    if USE_BIAS {
        let first = bias_base(group);
        let ld = params.bias_ld;
        if BIAS_ALONG_M {
            y += bias_load(first + row * ld);
        } else {
            let at = first + col * ld;
            y.x += bias_load(at);
            if n > 1u { y.y += bias_load(at + ld); }
            if n > 2u { y.z += bias_load(at + 2u * ld); }
            if n > 3u { y.w += bias_load(at + 3u * ld); }
        }
    }
    return ended(batch, row, col, n, y);
}
