// Operand in codes of 8 or 4 bits that stand for numbers, low bits first, with a scale in f32 per
// block along K: element = scale · number. Rows are whole blocks, so the linear index gives word
// and scale.
// needs: float8 fp4 nf4
// provides: X_BINDING X_BINDING_1 X_BITS X_BLOCK X_CODES X_NUMBER x_codes x_decode4 x_fetch4
//        x_number4 x_raw4 x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param
const X_BITS: u32 = 8u; //param
const X_BLOCK: u32 = 32u; //param
// 0 for signed bytes, 1 for e4m3, 2 for e5m2, 3 for NF4, 4 for FP4.
const X_NUMBER: u32 = 0u; //param

// Codes in a word.
const X_CODES: u32 = 32u / X_BITS;

@group(0) @binding(X_BINDING) var<storage, read> x_codes: array<u32>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_scales: array<f32>;

// The numbers of four codes.
fn x_number4(codes: vec4<u32>) -> vec4<f32> {
    if X_NUMBER == 0u {
        return vec4<f32>((bitcast<vec4<i32>>(codes) << vec4<u32>(24u)) >> vec4<u32>(24u));
    }
    if X_NUMBER <= 2u {
        return float8(codes, X_NUMBER == 2u);
    }
    if X_NUMBER == 3u {
        return vec4<f32>(nf4(codes.x), nf4(codes.y), nf4(codes.z), nf4(codes.w));
    }
    return vec4<f32>(fp4(codes.x), fp4(codes.y), fp4(codes.z), fp4(codes.w));
}

struct x_raw4 {
    codes: u32,
    scale: f32,
}

// i is a multiple of 4: four codes are a word or half of one, and never straddle a block.
fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    return x_raw4(x_codes[i / X_CODES] >> (i % X_CODES * X_BITS), x_scales[i / X_BLOCK]);
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    let shifts = vec4<u32>(0u, X_BITS, 2u * X_BITS, 3u * X_BITS);
    return raw.scale * x_number4(vec4<u32>(raw.codes) >> shifts);
}
