// Operand in f32, f16 or bf16 as words, one element at a time, widened by integers alone: every
// device gets every bit.
// needs: float_of_half
// provides: X_BINDING X_TYPE x_bits x_bits4 x_data

const X_BINDING: u32 = 1u; //param
// 0 for f32, 1 for f16, 2 for bf16.
const X_TYPE: u32 = 0u; //param

@group(0) @binding(X_BINDING) var<storage, read> x_data: array<u32>;

// The element as the bits of an f32.
fn x_bits(i: u32) -> u32 {
    if X_TYPE == 0u {
        return x_data[i];
    }
    return float_of_half(x_data[i / 2u] >> (i % 2u * 16u), X_TYPE == 2u);
}

fn x_bits4(i: u32) -> vec4<u32> {
    return vec4<u32>(x_bits(i), x_bits(i + 1u), x_bits(i + 2u), x_bits(i + 3u));
}
