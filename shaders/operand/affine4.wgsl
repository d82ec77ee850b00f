// Operand in affine 4-bit codes, groups of 64 along K (MLX): element = scale · code + bias. Eight codes to a word, low nibble first;
// a scale and a bias per group, in f32, f16 or bf16. Rows are whole groups, so the linear index gives word and group.
// needs: widen
// provides: X_BIASES X_BINDING X_Eight X_GROUP X_SCALES X_SCALE_BF16 X_SCALE_HALF x_biases x_codes
//        x_decode4 x_fetch4 x_load x_load4 x_load4_part x_load8 x_raw4 x_scale_bias x_scales
//        x_widen8

const X_BINDING: u32 = 2u; //param
const X_SCALES: u32 = 7u;
const X_BIASES: u32 = 8u;
const X_SCALE_HALF: bool = false; //param
const X_SCALE_BF16: bool = false; //param
const X_GROUP: u32 = 64u;

@group(0) @binding(X_BINDING) var<storage, read> x_codes: array<u32>;
@group(0) @binding(X_SCALES) var<storage, read> x_scales: array<u32>;
@group(0) @binding(X_BIASES) var<storage, read> x_biases: array<u32>;

fn x_scale_bias(group: u32) -> vec2<f32> {
    if X_SCALE_HALF {
        let word = group / 2u;
        let lane = group % 2u;
        return vec2<f32>(widen(x_scales[word], X_SCALE_BF16)[lane], widen(x_biases[word], X_SCALE_BF16)[lane]);
    }
    return vec2<f32>(bitcast<f32>(x_scales[group]), bitcast<f32>(x_biases[group]));
}

fn x_load(i: u32) -> f32 {
    let code = (x_codes[i / 8u] >> (i % 8u * 4u)) & 15u;
    let affine = x_scale_bias(i / X_GROUP);
    return affine.x * f32(code) + affine.y;
}

struct x_raw4 {
    codes: u32,
    affine: vec2<f32>,
}

// i is a multiple of 4: four codes are half a word and never straddle a group.
fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    return x_raw4(x_codes[i / 8u] >> (i % 8u * 4u), x_scale_bias(i / X_GROUP));
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    let codes = (vec4<u32>(raw.codes) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    return raw.affine.x * vec4<f32>(codes) + raw.affine.y;
}

fn x_load4(i: u32) -> vec4<f32> {
    return x_decode4(x_fetch4(i, 4u));
}

// n is 0 or 4.
fn x_load4_part(i: u32, n: u32) -> vec4<f32> {
    if n == 0u {
        return vec4<f32>();
    }
    return x_load4(i);
}

// Codes, scale and bias of eight elements, which share a word and a group.
alias X_Eight = vec3<u32>;

// i is a multiple of 8; n is 8, since rows are whole groups.
fn x_load8(i: u32, n: u32) -> X_Eight {
    return vec3<u32>(x_codes[i / 8u], bitcast<vec2<u32>>(x_scale_bias(i / X_GROUP)));
}

fn x_widen8(eight: X_Eight) -> mat2x4<f32> {
    let low = vec4<f32>((vec4<u32>(eight.x) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u));
    let high = vec4<f32>((vec4<u32>(eight.x) >> vec4<u32>(16u, 20u, 24u, 28u)) & vec4<u32>(15u));
    let affine = bitcast<vec2<f32>>(eight.yz);
    return mat2x4<f32>(affine.x * low + affine.y, affine.x * high + affine.y);
}
