// Operand in mxfp4: codes of e2m1, eight to a word, low nibble first; a byte per block of 32 along
// K, the exponent of its scale. Rows are whole blocks, so the linear index gives word and scale.
// needs: nothing
// provides: X_BINDING X_BINDING_1 x_codes x_decode4 x_fetch4 x_four x_raw4 x_scale x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param

@group(0) @binding(X_BINDING) var<storage, read> x_codes: array<u32>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_scales: array<u32>;

// The scale of block i: 2^(byte - 127), or 0 where that is subnormal.
fn x_scale(i: u32) -> f32 {
    return bitcast<f32>(((x_scales[i / 4u] >> (i % 4u * 8u)) & 0xffu) << 23u);
}

// The values of the four codes in the lower half of a word. A table of nibbles has twice the
// magnitudes; bit 3 of a code is the sign.
fn x_four(word: u32) -> vec4<f32> {
    let codes = vec4<u32>(word) >> vec4<u32>(0u, 4u, 8u, 12u);
    let twice = (vec4<u32>(0xc8643210u) >> ((codes & vec4<u32>(7u)) * 4u)) & vec4<u32>(15u);
    let magnitudes = 0.5 * vec4<f32>(twice);
    return select(magnitudes, -magnitudes, (codes & vec4<u32>(8u)) != vec4<u32>());
}

struct x_raw4 {
    codes: u32,
    scale: f32,
}

// i is a multiple of 4: four codes are half a word and never straddle a block.
fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    return x_raw4(x_codes[i / 8u] >> (i % 8u * 4u), x_scale(i / 32u));
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    return raw.scale * x_four(raw.codes);
}
