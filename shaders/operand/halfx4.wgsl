// Operand in a 16-bit type, f16 or bf16, as halves of words, four at a time: offset, strides and the contiguous extent are
// multiples of 4.

const X_BINDING: u32 = 1u; //param
const X_BF16: bool = false; //param

@group(0) @binding(X_BINDING) var<storage, read> x_data: array<vec2<u32>>;

fn x_load(i: u32) -> f32 {
    return widen(x_data[i / 4u][i / 2u % 2u], X_BF16)[i % 2u];
}

fn x_load4(i: u32) -> vec4<f32> {
    let words = x_data[i / 4u];
    return vec4<f32>(widen(words.x, X_BF16), widen(words.y, X_BF16));
}

// n is 0 or 4.
fn x_load4_part(i: u32, n: u32) -> vec4<f32> {
    if n == 0u {
        return vec4<f32>();
    }
    return x_load4(i);
}
