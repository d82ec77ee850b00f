// Operand in Q4_0 (GGUF): blocks of 18 bytes along K, a scale in f16 and 16 bytes of codes, whose
// low nibbles are elements 0 to 15 and whose high nibbles are elements 16 to 31. Rows are whole
// blocks, so the linear index gives the block. Blocks begin at half words.
// needs: nothing
// provides: X_BINDING x_blocks x_decode4 x_fetch4 x_half_word x_raw4

const X_BINDING: u32 = 2u; //param

@group(0) @binding(X_BINDING) var<storage, read> x_blocks: array<u32>;

// The 16 bits at half word i, in the lower half.
fn x_half_word(i: u32) -> u32 {
    return x_blocks[i / 2u] >> (i % 2u * 16u) & 0xffffu;
}

struct x_raw4 {
    codes: u32,
    scale: u32,
}

// i is a multiple of 4: four codes are the low or the high nibbles of four bytes of one block. They
// come as low ones.
fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    let block = i / 32u * 9u;
    let first = block + 1u + i % 16u / 2u;
    let bytes = x_half_word(first) | (x_half_word(first + 1u) << 16u);
    return x_raw4(bytes >> (i / 16u % 2u * 4u), x_half_word(block));
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    let codes = (vec4<u32>(raw.codes) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u);
    return unpack2x16float(raw.scale).x * (vec4<f32>(codes) - 8.0);
}
