// Operand in Q2_K (GGUF), 32 codes at a time, or the 128 that share bytes, as bytes: element =
// scale · byte - minimum, with a scale and a minimum for each half of 32. A block of 256 is 16
// bytes with a scale and a minimum of 4 bits each, 64 bytes of codes, four to a byte that lie 32
// elements apart, and d and dmin in f16.
// needs: nothing
// provides: X_BINDING X_CODE_STEP X_F16_NUMBERS X_GROUPS X_MORE X_PAIRED X_PARTS X_Raw X_SIGNED
//        x_blocks x_bytes x_numbers x_raw

const X_BINDING: u32 = 2u; //param
// Groups of 32 in a load.
const X_GROUPS: u32 = 1u; //param

const X_PARTS: u32 = 2u;
const X_PAIRED: bool = false;
const X_MORE: i32 = 0;
const X_CODE_STEP: f32 = 1.0;
const X_SIGNED: bool = false;
const X_F16_NUMBERS: bool = false;

@group(0) @binding(X_BINDING) var<storage, read> x_blocks: array<u32>;

struct X_Raw {
    codes: array<vec4<u32>, 2>,
    // The scales and minima of 128 elements.
    scales: vec2<u32>,
    // d and dmin.
    d: u32,
    // Which 32 of the 128 are the first.
    at: u32,
}

// i is a multiple of what a load has.
fn x_raw(i: u32) -> X_Raw {
    let first = i / 256u * 21u;
    let part = i / 128u % 2u;
    let scales = first + part * 2u;
    let codes = first + 4u + part * 8u;
    let low = vec4<u32>(
        x_blocks[codes], x_blocks[codes + 1u], x_blocks[codes + 2u], x_blocks[codes + 3u]);
    let high = vec4<u32>(
        x_blocks[codes + 4u], x_blocks[codes + 5u], x_blocks[codes + 6u], x_blocks[codes + 7u]);
    return X_Raw(array<vec4<u32>, 2>(low, high), vec2<u32>(x_blocks[scales], x_blocks[scales + 1u]),
        x_blocks[first + 20u], i / 32u % 4u);
}

// Half of the codes of a group of 32: halves 0 and 1 are the first group's.
fn x_bytes(raw: X_Raw, half: u32) -> vec4<u32> {
    let at = raw.at + half / 2u;
    return (raw.codes[half % 2u] >> vec4<u32>(at * 2u)) & vec4<u32>(0x03030303u);
}

fn x_numbers(raw: X_Raw, half: u32) -> vec2<f32> {
    let at = raw.at + half / 2u;
    let word = select(raw.scales.x, raw.scales.y, at >= 2u);
    let pair = vec2<u32>(word >> (at % 2u * 16u + half % 2u * 8u)) >> vec2<u32>(0u, 4u);
    return unpack2x16float(raw.d) * vec2<f32>(1.0, -1.0) * vec2<f32>(pair & vec2<u32>(15u));
}
