// Operand in mxfp4 or nvfp4, 32 codes along K at a time as bytes: element = X_CODE_STEP · scale ·
// (byte + X_MORE), where the sum is twice the code's value. nvfp4 has a scale for each half. The
// even codes of eight come before the odd ones.
// needs: E2M1_MORE e2m1_bytes float8
// provides: X_BINDING X_BINDING_1 X_BITS X_BLOCK X_CODE_STEP X_E4M3_SCALE X_F16_NUMBERS X_GROUPS
//        X_MORE X_PAIRED X_PARTS X_Raw X_SIGNED x_bytes x_codes x_numbers x_raw x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param
const X_BITS: u32 = 4u; //param
const X_BLOCK: u32 = 32u; //param
const X_E4M3_SCALE: bool = false; //param

const X_GROUPS: u32 = 1u;
const X_PARTS: u32 = 1u + 16u / X_BLOCK;
const X_PAIRED: bool = true;
const X_MORE: i32 = -E2M1_MORE;
const X_CODE_STEP: f32 = 0.5;
const X_SIGNED: bool = false;
// Scales have the range of f32.
const X_F16_NUMBERS: bool = false;

const_assert X_BITS == 4u && (X_BLOCK == 32u || X_BLOCK == 16u);

@group(0) @binding(X_BINDING) var<storage, read> x_codes: array<vec4<u32>>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_scales: array<u32>;

struct X_Raw {
    codes: vec4<u32>,
    // Four scales, and the place of the first among them.
    scales: u32,
    at: u32,
}

// i is a multiple of 32.
fn x_raw(i: u32) -> X_Raw {
    let block = i / X_BLOCK;
    return X_Raw(x_codes[i / 32u], x_scales[block / 4u], block % 4u);
}

// Half of the codes.
fn x_bytes(raw: X_Raw, half: u32) -> vec4<u32> {
    let first = select(raw.codes.x, raw.codes.z, half == 1u);
    let second = select(raw.codes.y, raw.codes.w, half == 1u);
    let words = vec4<u32>(first, first, second, second);
    return e2m1_bytes(words, vec4<u32>(0u, 4u, 0u, 4u));
}

// The scale. In e8m0 it is 2^(byte - 127), or 0 if that is subnormal.
fn x_numbers(raw: X_Raw, half: u32) -> vec2<f32> {
    let byte = (raw.scales >> ((raw.at + half * (X_PARTS - 1u)) * 8u)) & 0xffu;
    if X_E4M3_SCALE {
        return vec2<f32>(float8(vec4<u32>(byte), false).x, 0.0);
    }
    return vec2<f32>(bitcast<f32>(byte << 23u), 0.0);
}
