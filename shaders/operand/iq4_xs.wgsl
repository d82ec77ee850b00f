// Operand in IQ4_XS (GGUF): blocks of 256 along K in sub-blocks of 32. A block is d in f16, two
// bytes with the high two bits of 8 scales, four with their low nibbles, and 16 bytes for each
// sub-block: the low nibbles are elements 0 to 15, the high ones elements 16 to 31. Rows are whole
// blocks.
// needs: iq4_nl
// provides: X_BINDING x_blocks x_decode4 x_fetch4 x_raw4

const X_BINDING: u32 = 2u; //param

@group(0) @binding(X_BINDING) var<storage, read> x_blocks: array<u32>;

struct x_raw4 {
    codes: u32,
    scale: f32,
}

// i is a multiple of 4: four codes are the low or the high nibbles of a word.
fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    let first = i / 256u * 34u;
    let j = i / 32u % 8u;
    let head = x_blocks[first];
    let low = (x_blocks[first + 1u] >> (4u * j)) & 15u;
    let high = (head >> (16u + 2u * j)) & 3u;
    let scale = unpack2x16float(head).x * (f32(low | (high << 4u)) - 32.0);
    return x_raw4(x_blocks[first + 2u + 4u * j + i % 16u / 4u] >> (i / 16u % 2u * 4u), scale);
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    return raw.scale * iq4_nl(vec4<u32>(raw.codes) >> vec4<u32>(0u, 8u, 16u, 24u));
}
