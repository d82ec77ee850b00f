// Operand in a microscaling format: codes of e2m1 in 4 bits or of e4m3 in 8, low bits first; a byte
// per block along K, the exponent of its scale or a scale in e4m3. Rows are whole blocks, so the
// linear index gives word and scale.
// needs: e2m1_doubled float8
// provides: X_BINDING X_BINDING_1 X_BITS X_BLOCK X_E4M3_SCALE x_codes x_decode4 x_fetch4 x_raw4
//        x_scale x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param
const X_BITS: u32 = 4u; //param
const X_BLOCK: u32 = 32u; //param
const X_E4M3_SCALE: bool = false; //param

@group(0) @binding(X_BINDING) var<storage, read> x_codes: array<u32>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_scales: array<u32>;

// The scale of block i. In e8m0 it is 2^(byte - 127), or 0 if that is subnormal.
fn x_scale(i: u32) -> f32 {
    let byte = (x_scales[i / 4u] >> (i % 4u * 8u)) & 0xffu;
    if X_E4M3_SCALE {
        return float8(vec4<u32>(byte), false).x;
    }
    return bitcast<f32>(byte << 23u);
}

struct x_raw4 {
    codes: u32,
    scale: f32,
}

// i is a multiple of 4: four codes are a word or half of one, and never straddle a block.
fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    if X_BITS == 8u {
        return x_raw4(x_codes[i / 4u], x_scale(i / X_BLOCK));
    }
    return x_raw4(x_codes[i / 8u] >> (i % 8u * 4u), x_scale(i / X_BLOCK));
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    let codes = vec4<u32>(raw.codes) >> vec4<u32>(0u, X_BITS, 2u * X_BITS, 3u * X_BITS);
    if X_BITS == 8u {
        return raw.scale * float8(codes, false);
    }
    return raw.scale * (0.5 * e2m1_doubled(codes));
}
