// Operand in a format of GGUF with blocks of 32 along K and codes of 4 or 8 bits, a block at a time
// as signed bytes: element = scale · (byte + X_MORE) + least element. The low nibbles of 16 bytes
// are elements 0 to 15, the high ones elements 16 to 31.
// needs: E2M1_MORE e2m1_bytes widen_one
// provides: X_BINDING X_BINDING_1 X_BITS X_CODE_STEP X_F16_NUMBERS X_GROUPS X_LEAST X_LESS X_MORE
//        X_PAIRED X_PARTS X_Raw X_SIGNED X_TABLE X_VECTORS x_bytes x_codes x_numbers x_raw x_scales

const X_BINDING: u32 = 2u; //param
const X_BINDING_1: u32 = 7u; //param
const X_BITS: u32 = 4u; //param
const X_LEAST: bool = false; //param
// The number that codes are less by.
const X_LESS: u32 = 8u; //param
// 0 for codes that are numbers, 1 for signed bytes, 3 for e2m1.
const X_TABLE: u32 = 0u; //param

const_assert X_BITS != 5u && X_TABLE != 2u;

const X_VECTORS: u32 = X_BITS / 4u;
const X_GROUPS: u32 = 1u;
const X_PARTS: u32 = 1u;
const X_PAIRED: bool = false;
const X_MORE: i32 = -select(i32(X_LESS), E2M1_MORE, X_TABLE == 3u);
const X_CODE_STEP: f32 = 1.0;
const X_SIGNED: bool = X_BITS == 8u;
// Whether scale and least element are numbers of f16.
const X_F16_NUMBERS: bool = X_TABLE != 3u;

@group(0) @binding(X_BINDING) var<storage, read> x_scales: array<u32>;
@group(0) @binding(X_BINDING_1) var<storage, read> x_codes: array<vec4<u32>>;

struct X_Raw {
    codes: array<vec4<u32>, X_VECTORS>,
    // A word with the scale, and its place there.
    scale: u32,
    at: u32,
}

// i is a multiple of 32.
fn x_raw(i: u32) -> X_Raw {
    let block = i / 32u;
    var codes: array<vec4<u32>, X_VECTORS>;
    for (var j = 0u; j < X_VECTORS; j += 1u) { //unroll
        codes[j] = x_codes[block * X_VECTORS + j];
    }
    // How many scales a word has.
    let count = select(select(2u, 4u, X_TABLE == 3u), 1u, X_LEAST);
    return X_Raw(codes, x_scales[block / count], block % count);
}

// Half of the codes.
fn x_bytes(raw: X_Raw, half: u32) -> vec4<u32> {
    if X_BITS == 8u {
        return raw.codes[half % X_VECTORS];
    }
    if X_TABLE == 3u {
        return e2m1_bytes(raw.codes[0], vec4<u32>(half * 4u));
    }
    return (raw.codes[0] >> vec4<u32>(half * 4u)) & vec4<u32>(0x0f0f0f0fu);
}

fn x_numbers(raw: X_Raw, half: u32) -> vec2<f32> {
    if X_LEAST {
        return unpack2x16float(raw.scale);
    }
    if X_TABLE == 3u {
        // 2^(byte - 128), or 0 if that is subnormal.
        let byte = (raw.scale >> (raw.at * 8u)) & 0xffu;
        return vec2<f32>(bitcast<f32>((max(byte, 1u) - 1u) << 23u), 0.0);
    }
    return vec2<f32>(widen_one(raw.scale, raw.at, false), 0.0);
}
