// Operand in mxfp8, a block of 32 along K at a time: element = X_CODE_STEP · scale · number.
// needs: float8_four holds_nan
// provides: X_BINDING X_BINDING_1 X_BITS X_BLOCK X_CODES_ALONE X_CODE_STEP X_E4M3_SCALE X_PAIRED
//        X_PARTS X_Raw x_codes x_four x_numbers x_raw x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param
const X_BITS: u32 = 8u; //param
const X_BLOCK: u32 = 32u; //param
const X_E4M3_SCALE: bool = false; //param

const X_PARTS: u32 = 1u;
const X_PAIRED: bool = false;
const X_CODES_ALONE: bool = true;
const X_CODE_STEP: f32 = 256.0;

const_assert X_BITS == 8u && X_BLOCK == 32u && !X_E4M3_SCALE;

@group(0) @binding(X_BINDING) var<storage, read> x_codes: array<vec4<u32>>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_scales: array<u32>;

struct X_Raw {
    codes: array<vec4<u32>, 2>,
    // Four exponents, and which of them.
    scales: u32,
    at: u32,
}

// i is a multiple of 32.
fn x_raw(i: u32) -> X_Raw {
    let block = i / 32u;
    let codes = array<vec4<u32>, 2>(x_codes[block * 2u], x_codes[block * 2u + 1u]);
    return X_Raw(codes, x_scales[block / 4u], block % 4u);
}

fn x_four(raw: X_Raw, word: u32) -> vec4<f32> {
    return float8_four(raw.codes[word / 4u][word % 4u], false);
}

// The scale, 2^(byte - 127), or 0 if that is subnormal; NaN if a code is NaN, which x_four does not
// tell from a number.
fn x_numbers(raw: X_Raw, half: u32) -> vec2<f32> {
    let byte = (raw.scales >> (raw.at * 8u)) & 0xffu;
    let odd = holds_nan(raw.codes[0]) || holds_nan(raw.codes[1]);
    return vec2<f32>(bitcast<f32>(select(byte << 23u, 0x7fc00000u, odd)), 0.0);
}
