// Operand in Q8_0 (GGUF): blocks of 34 bytes along K, a scale in f16 and 32 signed bytes. Rows are
// whole blocks, so the linear index gives the block. Blocks begin at half words.
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

// i is a multiple of 4: four codes never straddle a block.
fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    let block = i / 32u * 17u;
    let first = block + 1u + i % 32u / 2u;
    return x_raw4(x_half_word(first) | (x_half_word(first + 1u) << 16u), x_half_word(block));
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    let codes = (vec4<i32>(i32(raw.codes)) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
    return unpack2x16float(raw.scale).x * vec4<f32>(codes);
}
