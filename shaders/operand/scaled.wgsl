// Operand in codes of 8 or 4 bits that stand for numbers, low bits first, with a scale in f32 per
// block along K: element = scale · number. Rows are whole blocks, so the linear index gives word
// and scale.
// needs: float8
// provides: X_BINDING X_BINDING_1 X_BITS X_BLOCK X_CODES X_NUMBER x_codes x_decode4 x_fetch4
//        x_listed x_number4 x_one_of x_raw4 x_scales

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

// One of 16 numbers, by conditions: not every compiler indexes constants well.
fn x_one_of(code: u32, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> f32 {
    let low = select(a, b, (code & 4u) != 0u);
    let high = select(c, d, (code & 4u) != 0u);
    let four = select(low, high, (code & 8u) != 0u);
    let even = select(four.x, four.z, (code & 2u) != 0u);
    let odd = select(four.y, four.w, (code & 2u) != 0u);
    return select(even, odd, (code & 1u) != 0u);
}

// A number of bitsandbytes' tables, NF4 or FP4.
fn x_listed(code: u32) -> f32 {
    if X_NUMBER == 3u {
        return x_one_of(code,
            vec4<f32>(-1.0, -0.6961928, -0.52507305, -0.3949175),
            vec4<f32>(-0.28444138, -0.18477343, -0.091050036, 0.0),
            vec4<f32>(0.0795803, 0.1609302, 0.2461123, 0.33791524),
            vec4<f32>(0.44070983, 0.562617, 0.72295684, 1.0));
    }
    return x_one_of(code,
        vec4<f32>(0.0, 0.0052083335, 0.6666667, 1.0),
        vec4<f32>(0.33333334, 0.5, 0.16666667, 0.25),
        vec4<f32>(0.0, -0.0052083335, -0.6666667, -1.0),
        vec4<f32>(-0.33333334, -0.5, -0.16666667, -0.25));
}

// The numbers of four codes.
fn x_number4(codes: vec4<u32>) -> vec4<f32> {
    if X_NUMBER == 0u {
        return vec4<f32>((bitcast<vec4<i32>>(codes) << vec4<u32>(24u)) >> vec4<u32>(24u));
    }
    if X_NUMBER <= 2u {
        return float8(codes, X_NUMBER == 2u);
    }
    return vec4<f32>(x_listed(codes.x), x_listed(codes.y), x_listed(codes.z), x_listed(codes.w));
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
