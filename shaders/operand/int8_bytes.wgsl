// Operand in signed bytes with a scale in f32 per block along K, 32 at a time: element = scale ·
// byte. Blocks of 16 have a scale for each half.
// needs: nothing
// provides: X_BINDING X_BINDING_1 X_BITS X_BLOCK X_CODE_STEP X_F16_NUMBERS X_GROUPS X_MORE X_NUMBER
//        X_PAIRED X_PARTS X_Raw X_SIGNED x_bytes x_codes x_numbers x_raw x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param
const X_BITS: u32 = 8u; //param
const X_BLOCK: u32 = 32u; //param
const X_NUMBER: u32 = 0u; //param

const X_GROUPS: u32 = 1u;
const X_PARTS: u32 = 1u + 16u / X_BLOCK;
const X_PAIRED: bool = false;
const X_MORE: i32 = 0;
const X_CODE_STEP: f32 = 1.0;
const X_SIGNED: bool = true;
const X_F16_NUMBERS: bool = false;

const_assert X_BITS == 8u && X_NUMBER == 0u;

@group(0) @binding(X_BINDING) var<storage, read> x_codes: array<vec4<u32>>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_scales: array<f32>;

struct X_Raw {
    codes: array<vec4<u32>, 2>,
    scales: vec2<f32>,
}

// i is a multiple of 32.
fn x_raw(i: u32) -> X_Raw {
    let codes = array<vec4<u32>, 2>(x_codes[i / 16u], x_codes[i / 16u + 1u]);
    let block = i / X_BLOCK;
    return X_Raw(codes, vec2<f32>(x_scales[block], x_scales[block + X_PARTS - 1u]));
}

// Half of the codes.
fn x_bytes(raw: X_Raw, half: u32) -> vec4<u32> {
    return raw.codes[half % 2u];
}

fn x_numbers(raw: X_Raw, half: u32) -> vec2<f32> {
    return vec2<f32>(select(raw.scales.x, raw.scales.y, half == 1u), 0.0);
}
