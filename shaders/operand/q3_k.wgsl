// Operand in Q3_K (GGUF): blocks of 256 along K in sub-blocks of 16. A block is 32 bytes of high
// bits, 64 bytes of pairs of low bits that lie 32 elements apart, 12 bytes with 16 scales of 6
// bits; and d in f16, in a separate plane. Rows are whole blocks.
// needs: widen_one
// provides: X_BINDING X_BINDING_1 x_blocks x_decode4 x_fetch4 x_raw4 x_scale x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param

@group(0) @binding(X_BINDING) var<storage, read> x_blocks: array<u32>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_scales: array<u32>;

// The scale of a sub-block: its low four bits are a nibble of eight bytes, its high two in the four
// bytes after them.
fn x_scale(block: u32, sub: u32) -> f32 {
    let first = block * 27u + 24u;
    let low = x_blocks[first + sub / 4u % 2u] >> (sub % 4u * 8u + sub / 8u * 4u);
    let high = x_blocks[first + 2u] >> (sub % 4u * 8u + sub / 4u * 2u);
    let scale = f32((low & 15u) | ((high & 3u) << 4u)) - 32.0;
    return widen_one(x_scales[block / 2u], block % 2u, false) * scale;
}

struct x_raw4 {
    codes: u32,
    scale: f32,
}

// i is a multiple of 4: four codes come as bytes.
fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    let block = i / 256u;
    let first = block * 27u;
    let word = i % 32u / 4u;
    let low =
        (x_blocks[first + 8u + i / 128u % 2u * 8u + word] >> (i / 32u % 4u * 2u)) & 0x03030303u;
    let high = (x_blocks[first + word] >> (i / 32u % 8u)) & 0x01010101u;
    return x_raw4(low | (high << 2u), x_scale(block, i / 16u % 16u));
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    let codes = (vec4<u32>(raw.codes) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(7u);
    return raw.scale * (vec4<f32>(codes) - 4.0);
}
