// Operand that is not there (no bias, no residual, K = 0): reads as zero, binds nothing.
// needs: nothing
// provides: x_decode4 x_fetch4 x_load x_load4 x_load4_masked x_raw4

fn x_load(i: u32) -> f32 {
    return 0.0;
}

fn x_load4(i: u32) -> vec4<f32> {
    return vec4<f32>();
}

fn x_load4_masked(i: u32, n: u32) -> vec4<f32> {
    return vec4<f32>();
}

alias x_raw4 = vec4<f32>;

fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    return vec4<f32>();
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    return raw;
}
