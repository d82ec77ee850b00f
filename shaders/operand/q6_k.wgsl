// Operand in Q6_K (GGUF): blocks of 256 along K in sub-blocks of 16. A block is 128 bytes of low
// nibbles that lie 64 elements apart, 64 bytes of pairs of high bits that lie 32 apart, 16 signed
// scales; and d in f16, in a separate plane. Rows are whole blocks.
// needs: widen_one
// provides: X_BINDING X_BINDING_1 x_blocks x_decode4 x_fetch4 x_raw4 x_scale x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param

@group(0) @binding(X_BINDING) var<storage, read> x_blocks: array<u32>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_scales: array<u32>;

fn x_scale(block: u32, sub: u32) -> f32 {
    let word = x_blocks[block * 52u + 48u + sub / 4u];
    let scale = (i32(word) << (24u - sub % 4u * 8u)) >> 24u;
    return widen_one(x_scales[block / 2u], block % 2u, false) * f32(scale);
}

struct x_raw4 {
    codes: u32,
    scale: f32,
}

// i is a multiple of 4: four codes come as bytes.
fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    let block = i / 256u;
    let half = block * 52u + i / 128u % 2u * 16u;
    let word = i % 32u / 4u;
    let low = (x_blocks[half + i / 32u % 2u * 8u + word] >> (i / 64u % 2u * 4u)) & 0x0f0f0f0fu;
    let pairs = x_blocks[block * 52u + 32u + i / 128u % 2u * 8u + word];
    let high = (pairs >> (i / 32u % 4u * 2u)) & 0x03030303u;
    return x_raw4(low | (high << 4u), x_scale(block, i / 16u % 16u));
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    let codes = (vec4<u32>(raw.codes) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(63u);
    return raw.scale * (vec4<f32>(codes) - 32.0);
}
