// Operand in Q6_K (GGUF), 32 codes at a time as bytes: element = scale · (byte + X_MORE), with a
// scale for each half. A block of 256 is 128 bytes of low nibbles that lie 64 elements apart, 64
// bytes of pairs of high bits that lie 32 apart, 16 signed scales; and d in f16, in a separate
// plane.
// needs: widen_one
// provides: X_BINDING X_BINDING_1 X_CODE_STEP X_F16_NUMBERS X_GROUPS X_MORE X_PAIRED X_PARTS X_Raw
//        X_SIGNED x_blocks x_bytes x_numbers x_raw x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param

const X_GROUPS: u32 = 1u;
const X_PARTS: u32 = 2u;
const X_PAIRED: bool = false;
const X_MORE: i32 = -32;
const X_CODE_STEP: f32 = 1.0;
const X_SIGNED: bool = false;
const X_F16_NUMBERS: bool = false;

@group(0) @binding(X_BINDING) var<storage, read> x_blocks: array<vec4<u32>>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_scales: array<u32>;

struct X_Raw {
    low: array<vec4<u32>, 2>,
    high: array<vec4<u32>, 2>,
    // A word with both scales, and one with d.
    scales: u32,
    d: u32,
    // Which 32 of the block they are.
    at: u32,
    block: u32,
}

// i is a multiple of 32.
fn x_raw(i: u32) -> X_Raw {
    let block = i / 256u;
    let at = i / 32u % 8u;
    let first = block * 13u;
    let low = first + at / 4u * 4u + at % 2u * 2u;
    let high = first + 8u + at / 4u * 2u;
    return X_Raw(array<vec4<u32>, 2>(x_blocks[low], x_blocks[low + 1u]),
        array<vec4<u32>, 2>(x_blocks[high], x_blocks[high + 1u]), x_blocks[first + 12u][at / 2u],
        x_scales[block / 2u], at, block);
}

// Half of the codes.
fn x_bytes(raw: X_Raw, half: u32) -> vec4<u32> {
    let low = (raw.low[half % 2u] >> vec4<u32>(raw.at / 2u % 2u * 4u)) & vec4<u32>(0x0f0f0f0fu);
    let high = (raw.high[half % 2u] >> vec4<u32>(raw.at % 4u * 2u)) & vec4<u32>(0x03030303u);
    return low | (high << vec4<u32>(4u));
}

fn x_numbers(raw: X_Raw, half: u32) -> vec2<f32> {
    let scale = (i32(raw.scales) << (24u - (raw.at % 2u * 2u + half) * 8u)) >> 24u;
    return vec2<f32>(widen_one(raw.d, raw.block % 2u, false) * f32(scale), 0.0);
}
