// Operand in affine codes of 4 or 8 bits (MLX), 32 at a time as signed bytes: element = scale ·
// (byte + X_MORE) + bias. With 4 bits, the even codes of eight come before the odd ones.
// needs: widen_one
// provides: X_BINDING X_BINDING_1 X_BINDING_2 X_BITS X_BLOCK X_CODE_STEP X_F16_NUMBERS X_GROUPS
//        X_MORE X_PAIRED X_PARTS X_Raw X_SCALE X_SIGNED X_VECTORS x_biases x_bytes x_codes
//        x_numbers x_raw x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param
const X_BINDING_2: u32 = 8u; //param
const X_BITS: u32 = 4u; //param
const X_BLOCK: u32 = 64u; //param
// Type of scales and biases: 0 for f32, 1 for f16, 2 for bf16.
const X_SCALE: u32 = 0u; //param

const X_VECTORS: u32 = X_BITS / 4u;
const X_GROUPS: u32 = 1u;
const X_PARTS: u32 = 1u;
const X_PAIRED: bool = X_BITS == 4u;
const X_MORE: i32 = select(0, 128, X_BITS == 8u);
const X_CODE_STEP: f32 = 1.0;
const X_SIGNED: bool = X_BITS == 8u;
// Whether scale and bias are numbers of f16.
const X_F16_NUMBERS: bool = X_SCALE == 1u;

@group(0) @binding(X_BINDING) var<storage, read> x_codes: array<vec4<u32>>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_scales: array<u32>;
@group(0) @binding(X_BINDING_2) var<storage, read> x_biases: array<u32>;

struct X_Raw {
    codes: array<vec4<u32>, X_VECTORS>,
    // Words with a scale and a bias, and which half of them.
    numbers: vec2<u32>,
    half: u32,
}

// i is a multiple of 32.
fn x_raw(i: u32) -> X_Raw {
    var codes: array<vec4<u32>, X_VECTORS>;
    for (var j = 0u; j < X_VECTORS; j += 1u) { //unroll
        codes[j] = x_codes[i / 32u * X_VECTORS + j];
    }
    let group = i / X_BLOCK;
    let word = select(group / 2u, group, X_SCALE == 0u);
    return X_Raw(codes, vec2<u32>(x_scales[word], x_biases[word]), group % 2u);
}

// Half of the 32 codes.
fn x_bytes(raw: X_Raw, half: u32) -> vec4<u32> {
    if X_BITS == 8u {
        return raw.codes[half % X_VECTORS] ^ vec4<u32>(0x80808080u);
    }
    let first = select(raw.codes[0].x, raw.codes[0].z, half == 1u);
    let second = select(raw.codes[0].y, raw.codes[0].w, half == 1u);
    let words = vec4<u32>(first, first, second, second);
    return (words >> vec4<u32>(0u, 4u, 0u, 4u)) & vec4<u32>(0x0f0f0f0fu);
}

fn x_numbers(raw: X_Raw, half: u32) -> vec2<f32> {
    if X_SCALE == 0u {
        return bitcast<vec2<f32>>(raw.numbers);
    }
    let bf16 = X_SCALE == 2u;
    return vec2<f32>(widen_one(raw.numbers.x, raw.half, bf16),
        widen_one(raw.numbers.y, raw.half, bf16));
}
