// Operand in Q3_K (GGUF), 32 codes at a time, or the 128 that share bytes, as bytes: element =
// scale · (byte + X_MORE), with a scale for each half of 32. A block of 256 is 32 bytes of high
// bits, 64 bytes of pairs of low bits that lie 32 elements apart, 12 bytes with 16 scales of 6
// bits; and d in f16, in a separate plane.
// needs: widen_one
// provides: X_BINDING X_BINDING_1 X_CODE_STEP X_F16_NUMBERS X_GROUPS X_MORE X_PAIRED X_PARTS X_Raw
//        X_SIGNED x_blocks x_bytes x_numbers x_raw x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param
// Groups of 32 in a load.
const X_GROUPS: u32 = 1u; //param

const X_PARTS: u32 = 2u;
const X_PAIRED: bool = false;
const X_MORE: i32 = -4;
const X_CODE_STEP: f32 = 1.0;
const X_SIGNED: bool = false;
const X_F16_NUMBERS: bool = false;

@group(0) @binding(X_BINDING) var<storage, read> x_blocks: array<u32>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_scales: array<u32>;

struct X_Raw {
    low: array<vec4<u32>, 2>,
    // High bits: bit j of a byte belongs to group j of the block.
    high: array<vec4<u32>, 2>,
    // The low bits of the scales, then the high ones.
    scales: vec2<u32>,
    high_scales: u32,
    // A word with d, and its place there.
    d: u32,
    d_at: u32,
    // Which 32 of the block are the first.
    at: u32,
}

// i is a multiple of what a load has.
fn x_raw(i: u32) -> X_Raw {
    let block = i / 256u;
    let first = block * 27u;
    let low = first + 8u + i / 128u % 2u * 8u;
    var codes: array<vec4<u32>, 2>;
    var high: array<vec4<u32>, 2>;
    for (var j = 0u; j < 2u; j += 1u) { //unroll
        let a = low + j * 4u;
        let b = first + j * 4u;
        codes[j] = vec4<u32>(x_blocks[a], x_blocks[a + 1u], x_blocks[a + 2u], x_blocks[a + 3u]);
        high[j] = vec4<u32>(x_blocks[b], x_blocks[b + 1u], x_blocks[b + 2u], x_blocks[b + 3u]);
    }
    let scales = vec2<u32>(x_blocks[first + 24u], x_blocks[first + 25u]);
    return X_Raw(codes, high, scales, x_blocks[first + 26u], x_scales[block / 2u], block % 2u,
        i / 32u % 8u);
}

// Half of the codes of a group of 32: halves 0 and 1 are the first group's.
fn x_bytes(raw: X_Raw, half: u32) -> vec4<u32> {
    let at = raw.at + half / 2u;
    let low = (raw.low[half % 2u] >> vec4<u32>(at % 4u * 2u)) & vec4<u32>(0x03030303u);
    let high = (raw.high[half % 2u] >> vec4<u32>(at)) & vec4<u32>(0x01010101u);
    return low | (high << vec4<u32>(2u));
}

// The low four bits of a scale are a nibble of eight bytes, its high two are in the four bytes
// after them.
fn x_numbers(raw: X_Raw, half: u32) -> vec2<f32> {
    let sub = (raw.at + half / 2u) * 2u + half % 2u;
    let word = select(raw.scales.x, raw.scales.y, sub / 4u % 2u == 1u);
    let low = word >> (sub % 4u * 8u + sub / 8u * 4u);
    let high = raw.high_scales >> (sub % 4u * 8u + sub / 4u * 2u);
    let scale = f32((low & 15u) | ((high & 3u) << 4u)) - 32.0;
    return vec2<f32>(widen_one(raw.d, raw.d_at, false) * scale, 0.0);
}
