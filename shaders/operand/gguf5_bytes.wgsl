// Operand in q5_0 or q5_1 (GGUF), a block of 32 along K at a time as bytes: element = scale · (byte
// + X_MORE) + least element. A word has the fifth bits. The low nibbles of 16 bytes are elements 0
// to 15, the high ones elements 16 to 31.
// needs: widen_one
// provides: X_BINDING X_BINDING_1 X_BITS X_CODE_STEP X_F16_NUMBERS X_GROUPS X_LEAST X_LESS X_MORE
//        X_PAIRED X_PARTS X_Raw X_SIGNED X_TABLE x_bytes x_codes x_numbers x_raw x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param
const X_BITS: u32 = 5u; //param
const X_LEAST: bool = false; //param
// The number that codes are less by.
const X_LESS: u32 = 16u; //param
const X_TABLE: u32 = 0u; //param

const X_GROUPS: u32 = 1u;
const X_PARTS: u32 = 1u;
const X_PAIRED: bool = false;
const X_MORE: i32 = -i32(X_LESS);
const X_CODE_STEP: f32 = 1.0;
const X_SIGNED: bool = false;
const X_F16_NUMBERS: bool = true;

const_assert X_BITS == 5u && X_TABLE == 0u;

@group(0) @binding(X_BINDING) var<storage, read> x_scales: array<u32>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_codes: array<u32>;

struct X_Raw {
    nibbles: vec4<u32>,
    fifth: u32,
    // A word with the scale, and its place there.
    scale: u32,
    at: u32,
}

// i is a multiple of 32.
fn x_raw(i: u32) -> X_Raw {
    let block = i / 32u;
    let first = block * 5u;
    let nibbles = vec4<u32>(
        x_codes[first + 1u], x_codes[first + 2u], x_codes[first + 3u], x_codes[first + 4u]);
    // How many scales a word has.
    let count = select(2u, 1u, X_LEAST);
    return X_Raw(nibbles, x_codes[first], x_scales[block / count], block % count);
}

// Half of the codes. Four fifth bits become bit 4 of four bytes by one product.
fn x_bytes(raw: X_Raw, half: u32) -> vec4<u32> {
    let four = (vec4<u32>(raw.fifth) >> (half * 16u + vec4<u32>(0u, 4u, 8u, 12u))) & vec4<u32>(15u);
    let fifth = (four * 0x02040810u) & vec4<u32>(0x10101010u);
    return ((raw.nibbles >> vec4<u32>(half * 4u)) & vec4<u32>(0x0f0f0f0fu)) | fifth;
}

fn x_numbers(raw: X_Raw, half: u32) -> vec2<f32> {
    if X_LEAST {
        return unpack2x16float(raw.scale);
    }
    return vec2<f32>(widen_one(raw.scale, raw.at, false), 0.0);
}
