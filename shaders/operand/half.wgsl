// Operand in a 16-bit type, f16 or bf16, as halves of words, one element at a time: any alignment, no extension.

const X_BINDING: u32 = 1u; //param
const X_BF16: bool = false; //param

@group(0) @binding(X_BINDING) var<storage, read> x_data: array<u32>;

fn x_load(i: u32) -> f32 {
    return widen(x_data[i / 2u], X_BF16)[i % 2u];
}

fn x_load4(i: u32) -> vec4<f32> {
    return vec4<f32>(x_load(i), x_load(i + 1u), x_load(i + 2u), x_load(i + 3u));
}

// Elements i .. i+3; those from n on are 0 and never read.
fn x_load4_part(i: u32, n: u32) -> vec4<f32> {
    var v = vec4<f32>();
    if n > 0u { v.x = x_load(i); }
    if n > 1u { v.y = x_load(i + 1u); }
    if n > 2u { v.z = x_load(i + 2u); }
    if n > 3u { v.w = x_load(i + 3u); }
    return v;
}
