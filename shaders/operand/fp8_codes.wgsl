// Operand in e4m3 or e5m2 with a scale in f32 per block along K, 32 codes at a time: element =
// X_CODE_STEP · scale · number.
// needs: float8_four holds_nan
// provides: X_BINDING X_BINDING_1 X_BITS X_BLOCK X_CODES_ALONE X_CODE_STEP X_E5M2 X_NUMBER X_PAIRED
//        X_PARTS X_Raw x_codes x_four x_numbers x_raw x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param
const X_BITS: u32 = 8u; //param
const X_BLOCK: u32 = 32u; //param
// 1 for e4m3, 2 for e5m2.
const X_NUMBER: u32 = 1u; //param

const X_E5M2: bool = X_NUMBER == 2u;
const X_PARTS: u32 = 1u;
const X_PAIRED: bool = false;
const X_CODES_ALONE: bool = true;
const X_CODE_STEP: f32 = select(256.0, 1.0, X_E5M2);

const_assert X_BITS == 8u && (X_NUMBER == 1u || X_NUMBER == 2u) && X_BLOCK % 32u == 0u;

@group(0) @binding(X_BINDING) var<storage, read> x_codes: array<vec4<u32>>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_scales: array<f32>;

struct X_Raw {
    codes: array<vec4<u32>, 2>,
    scale: f32,
}

// i is a multiple of 32.
fn x_raw(i: u32) -> X_Raw {
    let codes = array<vec4<u32>, 2>(x_codes[i / 16u], x_codes[i / 16u + 1u]);
    return X_Raw(codes, x_scales[i / X_BLOCK]);
}

fn x_four(raw: X_Raw, word: u32) -> vec4<f32> {
    return float8_four(raw.codes[word / 4u][word % 4u], X_E5M2);
}

// The scale; NaN if a code is NaN in e4m3, which x_four does not tell from a number.
fn x_numbers(raw: X_Raw, half: u32) -> vec2<f32> {
    let odd = !X_E5M2 && (holds_nan(raw.codes[0]) || holds_nan(raw.codes[1]));
    return vec2<f32>(bitcast<f32>(select(bitcast<u32>(raw.scale), 0x7fc00000u, odd)), 0.0);
}
