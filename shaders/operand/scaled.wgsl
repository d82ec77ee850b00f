// Operand in codes of 8 or 4 bits that stand for numbers, low bits first, with a scale in f32 per
// block along K: element = scale · number. Rows are whole blocks, so the linear index gives word
// and scale.
// needs: float8
// provides: X_BINDING X_BINDING_1 X_BITS X_BLOCK X_CODES X_FP4 X_NF4 X_NUMBER x_codes x_decode4
//        x_fetch4 x_listed x_number4 x_raw4 x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param
const X_BITS: u32 = 8u; //param
const X_BLOCK: u32 = 32u; //param
// 0 for signed bytes, 1 for e4m3, 2 for e5m2, 3 for NF4, 4 for FP4.
const X_NUMBER: u32 = 0u; //param

// Codes in a word.
const X_CODES: u32 = 32u / X_BITS;

// bitsandbytes' numbers.
const X_NF4 = mat4x4<f32>(
    -1.0, -0.6961928, -0.52507305, -0.3949175,
    -0.28444138, -0.18477343, -0.091050036, 0.0,
    0.0795803, 0.1609302, 0.2461123, 0.33791524,
    0.44070983, 0.562617, 0.72295684, 1.0,
);
const X_FP4 = mat4x4<f32>(
    0.0, 0.0052083335, 0.6666667, 1.0,
    0.33333334, 0.5, 0.16666667, 0.25,
    0.0, -0.0052083335, -0.6666667, -1.0,
    -0.33333334, -0.5, -0.16666667, -0.25,
);

@group(0) @binding(X_BINDING) var<storage, read> x_codes: array<u32>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_scales: array<f32>;

// One of 16 numbers, by conditions: not every compiler indexes constants well.
fn x_listed(numbers: mat4x4<f32>, code: u32) -> f32 {
    let low = select(numbers[0], numbers[1], (code & 4u) != 0u);
    let high = select(numbers[2], numbers[3], (code & 4u) != 0u);
    let four = select(low, high, (code & 8u) != 0u);
    let two = select(four.xy, four.zw, (code & 2u) != 0u);
    return select(two.x, two.y, (code & 1u) != 0u);
}

// The numbers of four codes.
fn x_number4(codes: vec4<u32>) -> vec4<f32> {
    if X_NUMBER == 0u {
        return vec4<f32>((bitcast<vec4<i32>>(codes) << vec4<u32>(24u)) >> vec4<u32>(24u));
    }
    if X_NUMBER <= 2u {
        return float8(codes, X_NUMBER == 2u);
    }
    if X_NUMBER == 3u {
        return vec4<f32>(x_listed(X_NF4, codes.x), x_listed(X_NF4, codes.y),
            x_listed(X_NF4, codes.z), x_listed(X_NF4, codes.w));
    }
    return vec4<f32>(x_listed(X_FP4, codes.x), x_listed(X_FP4, codes.y), x_listed(X_FP4, codes.z),
        x_listed(X_FP4, codes.w));
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
