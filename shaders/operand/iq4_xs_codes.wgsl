// Operand in IQ4_XS (GGUF), a sub-block of 32 along K at a time: element = scale · number of the
// code. A block of 256 is d in f16, two bytes with the high two bits of 8 scales, four with their
// low nibbles, and 16 bytes for each sub-block: the low nibbles are elements 0 to 15, the high ones
// elements 16 to 31.
// needs: iq4_nl x_look_up
// provides: X_BINDING X_CODES_ALONE X_CODE_STEP X_PAIRED X_PARTS X_Raw x_blocks x_four x_listed
//        x_numbers x_raw

const X_BINDING: u32 = 2u; //param

const X_PARTS: u32 = 1u;
const X_PAIRED: bool = false;
const X_CODES_ALONE: bool = true;
const X_CODE_STEP: f32 = 1.0;

@group(0) @binding(X_BINDING) var<storage, read> x_blocks: array<vec2<u32>>;

struct X_Raw {
    codes: vec4<u32>,
    // d and the high bits of scales, then their low nibbles.
    head: vec2<u32>,
    // Which sub-block of the block they are.
    at: u32,
}

fn x_listed(code: u32) -> f32 {
    return iq4_nl(vec4<u32>(code)).x;
}

// i is a multiple of 32.
fn x_raw(i: u32) -> X_Raw {
    let first = i / 256u * 17u;
    let at = i / 32u % 8u;
    let codes = first + 1u + 2u * at;
    return X_Raw(vec4<u32>(x_blocks[codes], x_blocks[codes + 1u]), x_blocks[first], at);
}

fn x_four(raw: X_Raw, word: u32) -> vec4<f32> {
    return x_look_up(raw.codes[word % 4u] >> (word / 4u * 4u));
}

fn x_numbers(raw: X_Raw, half: u32) -> vec2<f32> {
    let low = (raw.head.y >> (4u * raw.at)) & 15u;
    let high = (raw.head.x >> (16u + 2u * raw.at)) & 3u;
    return vec2<f32>(unpack2x16float(raw.head.x).x * (f32(low | (high << 4u)) - 32.0), 0.0);
}
