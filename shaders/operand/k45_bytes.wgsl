// Operand in Q4_K or Q5_K (GGUF), one or two sub-blocks of 32 at a time as bytes: element = scale ·
// byte - minimum. A block of 256 is d and dmin in f16, 12 bytes with 8 scales and 8 minima of 6
// bits, 32 bytes of fifth bits in Q5_K, and 128 bytes whose low nibbles are a sub-block and whose
// high ones the next.
// needs: nothing
// provides: X_BINDING X_CODE_STEP X_F16_NUMBERS X_GROUPS X_HIGH X_MORE X_PAIRED X_PARTS X_Raw
//        X_SIGNED X_VECTORS x_blocks x_bytes x_numbers x_raw

const X_BINDING: u32 = 2u; //param
// 1 in Q5_K, which has fifth bits.
const X_HIGH: u32 = 0u; //param
// Sub-blocks in a load.
const X_GROUPS: u32 = 1u; //param

const X_PARTS: u32 = 1u;
const X_PAIRED: bool = false;
const X_MORE: i32 = 0;
const X_CODE_STEP: f32 = 1.0;
const X_SIGNED: bool = false;
const X_F16_NUMBERS: bool = false;
// Vectors of a block.
const X_VECTORS: u32 = 9u + 2u * X_HIGH;

@group(0) @binding(X_BINDING) var<storage, read> x_blocks: array<vec4<u32>>;

struct X_Raw {
    codes: array<vec4<u32>, 2>,
    // Fifth bits: bit j of a byte belongs to sub-block j.
    high: array<vec4<u32>, 2>,
    // d and dmin, scales and minima.
    head: vec4<u32>,
    // Which sub-block of the block is the first.
    at: u32,
}

// i is a multiple of what a load has. Two sub-blocks share their codes' bytes.
fn x_raw(i: u32) -> X_Raw {
    let first = i / 256u * X_VECTORS;
    let at = i / 32u % 8u;
    var high = array<vec4<u32>, 2>();
    if X_HIGH == 1u {
        high = array<vec4<u32>, 2>(x_blocks[first + 1u], x_blocks[first + 2u]);
    }
    let codes = first + 1u + 2u * X_HIGH + at / 2u * 2u;
    let both = array<vec4<u32>, 2>(x_blocks[codes], x_blocks[codes + 1u]);
    return X_Raw(both, high, x_blocks[first], at);
}

// Half of a sub-block's codes: halves 0 and 1 are the first sub-block's.
fn x_bytes(raw: X_Raw, half: u32) -> vec4<u32> {
    let at = raw.at + half / 2u;
    let low = (raw.codes[half % 2u] >> vec4<u32>(at % 2u * 4u)) & vec4<u32>(0x0f0f0f0fu);
    if X_HIGH == 0u {
        return low;
    }
    let high = (raw.high[half % 2u] >> vec4<u32>(at)) & vec4<u32>(0x01010101u);
    return low | (high << vec4<u32>(4u));
}

fn x_numbers(raw: X_Raw, half: u32) -> vec2<f32> {
    let sub = raw.at + half / 2u;
    let at = sub % 4u * 8u;
    let low = vec2<u32>(raw.head.y, raw.head.z) >> vec2<u32>(at);
    var scale = low & vec2<u32>(63u);
    if sub >= 4u {
        let pair = vec2<u32>(raw.head.w) >> vec2<u32>(at, at + 4u);
        scale =
            (pair & vec2<u32>(15u)) | (((low >> vec2<u32>(6u)) & vec2<u32>(3u)) << vec2<u32>(4u));
    }
    return unpack2x16float(raw.head.x) * vec2<f32>(1.0, -1.0) * vec2<f32>(scale);
}
