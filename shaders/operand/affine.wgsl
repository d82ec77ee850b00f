// Operand in affine codes of 2 to 8 bits, in groups along K (MLX): element = scale · code + bias. A
// row of codes is one stream of bits, the first code in the lowest; a scale and a bias per group,
// in f32, f16 or bf16. Rows are whole groups, so the linear index gives word and group.
// needs: counted widen_one
// provides: X_BINDING X_BINDING_1 X_BINDING_2 X_BITS X_BLOCK X_CODES X_Eight X_MASK X_SCALE
//        X_SHIFTS X_STRADDLES x_biases x_codes x_codes_from x_decode4 x_fetch4 x_four x_load8
//        x_raw4 x_scale_bias x_scales x_widen8

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param
const X_BINDING_2: u32 = 8u; //param
const X_BITS: u32 = 4u; //param
const X_BLOCK: u32 = 64u; //param
// Type of scales and biases: 0 for f32, 1 for f16, 2 for bf16.
const X_SCALE: u32 = 0u; //param

// Whole codes in a word, and whether others straddle two.
const X_CODES: u32 = 32u / X_BITS;
const X_STRADDLES: bool = 32u % X_BITS != 0u;
const X_MASK: u32 = (1u << X_BITS) - 1u;
const X_SHIFTS: vec4<u32> = vec4<u32>(0u, X_BITS, 2u * X_BITS, 3u * X_BITS);

@group(0) @binding(X_BINDING) var<storage, read> x_codes: array<u32>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_scales: array<u32>;
@group(0) @binding(X_BINDING_2) var<storage, read> x_biases: array<u32>;

fn x_scale_bias(group: u32) -> vec2<f32> {
    if X_SCALE != 0u {
        let word = group / 2u;
        let lane = group % 2u;
        return vec2<f32>(widen_one(x_scales[word], lane, X_SCALE == 2u),
            widen_one(x_biases[word], lane, X_SCALE == 2u));
    }
    return vec2<f32>(bitcast<f32>(x_scales[group]), bitcast<f32>(x_biases[group]));
}

// Code i and those after it, from the lowest bit of a word on: at least `count`, which must fit a
// word. i is a multiple of 4.
fn x_codes_from(i: u32, count: u32) -> u32 {
    if !X_STRADDLES {
        return x_codes[i / X_CODES] >> (i % X_CODES * X_BITS);
    }
    // 32 codes are X_BITS words.
    let bit = i % 32u * X_BITS;
    let word = i / 32u * X_BITS + bit / 32u;
    let shift = bit % 32u;
    var codes = x_codes[word] >> shift;
    if shift + count * X_BITS > 32u {
        codes |= x_codes[word + 1u] << (32u - shift);
    }
    return codes;
}

// The four codes in the lowest bits of a word.
fn x_four(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> X_SHIFTS) & vec4<u32>(X_MASK));
}

struct x_raw4 {
    codes: u32,
    affine: vec2<f32>,
}

// i is a multiple of 4: four codes never straddle a group.
fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    return x_raw4(x_codes_from(i, 4u), x_scale_bias(i / X_BLOCK));
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    return raw.affine.x * x_four(raw.codes) + raw.affine.y;
}

// Two words of four codes each, scale and bias. If eight codes fit into a word, the first has all.
alias X_Eight = vec4<u32>;

// i is a multiple of 8; n is 0 or 8, since rows are whole groups.
fn x_load8(i: u32, n: u32) -> X_Eight {
    if n == 0u {
        return X_Eight();
    }
    var codes: vec2<u32>;
    if X_BITS == 4u {
        codes = vec2<u32>(x_codes[i / 8u], 0u);
    } else if X_BITS < 4u {
        codes = vec2<u32>(x_codes_from(i, 8u), 0u);
    } else {
        codes = vec2<u32>(x_codes_from(i, 4u), x_codes_from(i + 4u, 4u));
    }
    return vec4<u32>(codes, bitcast<vec2<u32>>(x_scale_bias(i / X_BLOCK)));
}

fn x_widen8(eight: X_Eight) -> mat2x4<f32> {
    if X_BITS == 4u {
        let even = counted(eight.x & 0x0f0f0f0fu);
        let odd = counted((eight.x >> 4u) & 0x0f0f0f0fu);
        let affine = bitcast<vec2<f32>>(eight.zw);
        return mat2x4<f32>(
            affine.x * vec4<f32>(even.x, odd.x, even.y, odd.y) + affine.y,
            affine.x * vec4<f32>(even.z, odd.z, even.w, odd.w) + affine.y,
        );
    }
    var high = eight.y;
    if X_BITS <= 4u {
        high = eight.x >> (4u * X_BITS % 32u);
    }
    let affine = bitcast<vec2<f32>>(eight.zw);
    return mat2x4<f32>(affine.x * x_four(eight.x) + affine.y, affine.x * x_four(high) + affine.y);
}
