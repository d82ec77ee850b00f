// Operand in a format of GGUF with blocks of 32 along K: a scale, perhaps a least element, and
// codes of 4, 5 or 8 bits. Rows are whole blocks, so the linear index gives the block. The low
// nibbles of 16 bytes are elements 0 to 15, the high ones elements 16 to 31; fifth bits are a word
// before them.
// needs: counted e2m1_doubled iq4_nl widen_one
// provides: X_BINDING X_BINDING_1 X_BITS X_LEAST X_LESS X_TABLE x_codes x_decode4 x_fetch4 x_four
//        x_raw4 x_scale x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param
const X_BITS: u32 = 4u; //param
const X_LEAST: bool = false; //param
// The number that codes are less by.
const X_LESS: u32 = 8u; //param
// 0 for codes that are numbers, 1 for signed bytes, 2 for places in IQ4_NL's table, 3 for e2m1.
const X_TABLE: u32 = 0u; //param

@group(0) @binding(X_BINDING) var<storage, read> x_scales: array<u32>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_codes: array<u32>;

// Scale and least element of a block.
fn x_scale(block: u32) -> vec2<f32> {
    if X_LEAST {
        return unpack2x16float(x_scales[block]);
    }
    if X_TABLE == 3u {
        // 2^(byte - 128), or 0 if that is subnormal.
        let byte = (x_scales[block / 4u] >> (block % 4u * 8u)) & 0xffu;
        return vec2<f32>(bitcast<f32>((max(byte, 1u) - 1u) << 23u), 0.0);
    }
    return vec2<f32>(widen_one(x_scales[block / 2u], block % 2u, false), 0.0);
}

struct x_raw4 {
    codes: u32,
    scale: vec2<f32>,
}

// i is a multiple of 4: four codes are a word, or the low or the high nibbles of one. They come as
// bytes.
fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    let block = i / 32u;
    // Codes of 32 elements are a word for each bit.
    let first = block * X_BITS;
    if X_BITS == 8u {
        return x_raw4(x_codes[first + i % 32u / 4u], x_scale(block));
    }
    var codes = (x_codes[first + X_BITS % 4u + i % 16u / 4u] >> (i / 16u % 2u * 4u)) & 0x0f0f0f0fu;
    if X_BITS == 5u {
        let fifth = x_codes[first] >> (i % 32u);
        codes |= ((fifth & 1u) << 4u) | ((fifth & 2u) << 11u) | ((fifth & 4u) << 18u)
            | ((fifth & 8u) << 25u);
    }
    return x_raw4(codes, x_scale(block));
}

fn x_four(word: u32) -> vec4<f32> {
    let codes = vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u);
    if X_TABLE == 1u {
        return vec4<f32>((vec4<i32>(i32(word)) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u));
    }
    if X_TABLE == 2u {
        return iq4_nl(codes);
    }
    if X_TABLE == 3u {
        return e2m1_doubled(codes);
    }
    return counted(word) - f32(X_LESS);
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    return raw.scale.x * x_four(raw.codes) + raw.scale.y;
}
