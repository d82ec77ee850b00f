// Operand in a 16-bit type, f16 or bf16, as halves of words, one element at a time: any alignment, no extension.

const X_BINDING: u32 = 1u; //param
const X_BF16: bool = false; //param

@group(0) @binding(X_BINDING) var<storage, read> x_data: array<u32>;

fn x_load(i: u32) -> f32 {
    return widen(x_data[i / 2u], X_BF16)[i % 2u];
}
