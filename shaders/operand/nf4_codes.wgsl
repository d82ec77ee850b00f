// Operand in NF4 or FP4 of bitsandbytes, 32 codes along K at a time, low bits first: element =
// scale · number of the code, with a scale in f32 per block.
// needs: fp4 nf4 x_look_up
// provides: X_BINDING X_BINDING_1 X_BITS X_BLOCK X_CODES_ALONE X_CODE_STEP X_NUMBER X_PAIRED
//        X_PARTS X_Raw x_codes x_four x_listed x_numbers x_raw x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param
const X_BITS: u32 = 4u; //param
const X_BLOCK: u32 = 64u; //param
// 3 for NF4, 4 for FP4.
const X_NUMBER: u32 = 3u; //param

const X_PARTS: u32 = 1u;
const X_PAIRED: bool = false;
const X_CODES_ALONE: bool = true;
const X_CODE_STEP: f32 = 1.0;

const_assert X_BITS == 4u && X_BLOCK % 32u == 0u && (X_NUMBER == 3u || X_NUMBER == 4u);

@group(0) @binding(X_BINDING) var<storage, read> x_codes: array<vec4<u32>>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_scales: array<f32>;

struct X_Raw {
    codes: vec4<u32>,
    scale: f32,
}

fn x_listed(code: u32) -> f32 {
    if X_NUMBER == 3u {
        return nf4(code);
    }
    return fp4(code);
}

// i is a multiple of 32.
fn x_raw(i: u32) -> X_Raw {
    return X_Raw(x_codes[i / 32u], x_scales[i / X_BLOCK]);
}

// The codes of four neighbours are half of a word: each comes to the low bits of a byte.
fn x_four(raw: X_Raw, word: u32) -> vec4<f32> {
    let codes = raw.codes[word / 2u] >> (word % 2u * 16u);
    let pairs = (codes & 0xffu) | ((codes & 0xff00u) << 8u);
    return x_look_up(pairs | (pairs << 4u));
}

fn x_numbers(raw: X_Raw, half: u32) -> vec2<f32> {
    return vec2<f32>(raw.scale, 0.0);
}
