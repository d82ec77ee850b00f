// Operand in iq4_nl (GGUF), a block of 32 along K at a time: element = scale · number of the code.
// The low nibbles of 16 bytes are elements 0 to 15, the high ones elements 16 to 31.
// needs: iq4_nl widen_one x_look_up
// provides: X_BINDING X_BINDING_1 X_BITS X_CODES_ALONE X_CODE_STEP X_LEAST X_LESS X_PAIRED X_PARTS
//        X_Raw X_TABLE x_codes x_four x_listed x_numbers x_raw x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param
const X_BITS: u32 = 4u; //param
const X_LEAST: bool = false; //param
const X_LESS: u32 = 0u; //param
const X_TABLE: u32 = 2u; //param

const X_PARTS: u32 = 1u;
const X_PAIRED: bool = false;
const X_CODES_ALONE: bool = true;
const X_CODE_STEP: f32 = 1.0;

const_assert X_BITS == 4u && !X_LEAST && X_LESS == 0u && X_TABLE == 2u;

@group(0) @binding(X_BINDING) var<storage, read> x_scales: array<u32>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_codes: array<vec4<u32>>;

struct X_Raw {
    codes: vec4<u32>,
    // A word with the scale, and its place there.
    scale: u32,
    at: u32,
}

fn x_listed(code: u32) -> f32 {
    return iq4_nl(vec4<u32>(code)).x;
}

// i is a multiple of 32.
fn x_raw(i: u32) -> X_Raw {
    let block = i / 32u;
    return X_Raw(x_codes[block], x_scales[block / 2u], block % 2u);
}

fn x_four(raw: X_Raw, word: u32) -> vec4<f32> {
    return x_look_up(raw.codes[word % 4u] >> (word / 4u * 4u));
}

fn x_numbers(raw: X_Raw, half: u32) -> vec2<f32> {
    return vec2<f32>(widen_one(raw.scale, raw.at, false), 0.0);
}
