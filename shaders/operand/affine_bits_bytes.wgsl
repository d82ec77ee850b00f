// Operand in affine codes of 2, 3, 5 or 6 bits (MLX), 32 at a time as bytes: element = scale · byte
// + bias. A row of codes is one stream of bits, the first code in the lowest.
// needs: counted widen_one
// provides: X_BINDING X_BINDING_1 X_BINDING_2 X_BITS X_BLOCK X_CODE_STEP X_F16_NUMBERS X_GROUPS
//        X_LESS_BY X_MORE X_PAIRED X_PARTS X_Raw X_SCALE X_SIGNED x_biases x_bytes x_codes x_four
//        x_four_bytes x_numbers x_raw x_scales x_word

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param
const X_BINDING_2: u32 = 8u; //param
const X_BITS: u32 = 3u; //param
const X_BLOCK: u32 = 64u; //param
// Type of scales and biases: 0 for f32, 1 for f16, 2 for bf16.
const X_SCALE: u32 = 0u; //param

const X_GROUPS: u32 = 1u;
const X_PARTS: u32 = 1u;
const X_PAIRED: bool = false;
const X_MORE: i32 = 0;
const X_CODE_STEP: f32 = 1.0;
const X_SIGNED: bool = false;
const X_LESS_BY: i32 = 0;
// Whether scale and bias are numbers of f16.
const X_F16_NUMBERS: bool = X_SCALE == 1u;

const_assert X_BITS < 8u;

@group(0) @binding(X_BINDING) var<storage, read> x_codes: array<u32>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_scales: array<u32>;
@group(0) @binding(X_BINDING_2) var<storage, read> x_biases: array<u32>;

struct X_Raw {
    // The first four words of the codes, and the last two.
    low: vec4<u32>,
    high: vec2<u32>,
    // Words with a scale and a bias, and which half of them.
    numbers: vec2<u32>,
    half: u32,
}

// i is a multiple of 32.
fn x_raw(i: u32) -> X_Raw {
    let first = i / 32u * X_BITS;
    // Each component by its name: FXC fails on loops around one that is chosen by an index.
    let low = vec4<u32>(x_codes[first], x_codes[first + 1u],
        x_codes[first + min(2u, X_BITS - 1u)], x_codes[first + min(3u, X_BITS - 1u)]);
    var high = vec2<u32>();
    if X_BITS > 4u {
        high = vec2<u32>(x_codes[first + 4u], x_codes[first + X_BITS - 1u]);
    }
    let group = i / X_BLOCK;
    let word = select(group / 2u, group, X_SCALE == 0u);
    return X_Raw(low, high, vec2<u32>(x_scales[word], x_biases[word]), group % 2u);
}

fn x_word(raw: X_Raw, at: u32) -> u32 {
    return select(raw.low[at % 4u], raw.high[at % 2u], at >= 4u);
}

// Four codes, from a bit of the stream on, as bytes: two pairs move apart, then the codes of each.
fn x_four_bytes(raw: X_Raw, bit: u32) -> u32 {
    let shift = bit % 32u;
    var four = x_word(raw, bit / 32u) >> shift;
    if shift + 4u * X_BITS > 32u {
        four |= x_word(raw, bit / 32u + 1u) << ((32u - shift) % 32u);
    }
    let pair = (1u << (2u * X_BITS)) - 1u;
    let pairs = (four & pair) | ((four << (16u - 2u * X_BITS)) & (pair << 16u));
    let low = ((1u << X_BITS) - 1u) * 0x10001u;
    return (pairs & low) | ((pairs << (8u - X_BITS)) & (low << 8u));
}

// Half of the 32 codes.
fn x_bytes(raw: X_Raw, half: u32) -> vec4<u32> {
    let bit = half * 16u * X_BITS;
    return vec4<u32>(x_four_bytes(raw, bit), x_four_bytes(raw, bit + 4u * X_BITS),
        x_four_bytes(raw, bit + 8u * X_BITS), x_four_bytes(raw, bit + 12u * X_BITS));
}

fn x_four(raw: X_Raw, word: u32) -> vec4<f32> {
    return counted(x_four_bytes(raw, word * 4u * X_BITS));
}

fn x_numbers(raw: X_Raw, half: u32) -> vec2<f32> {
    if X_SCALE == 0u {
        return bitcast<vec2<f32>>(raw.numbers);
    }
    let bf16 = X_SCALE == 2u;
    return vec2<f32>(widen_one(raw.numbers.x, raw.half, bf16),
        widen_one(raw.numbers.y, raw.half, bf16));
}
