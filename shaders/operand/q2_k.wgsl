// Operand in Q2_K (GGUF): blocks of 256 along K in sub-blocks of 16. A block is 16 bytes with a
// scale and a minimum of 4 bits each, 64 bytes of codes, four to a byte that lie 32 elements apart,
// and d and dmin in f16. Rows are whole blocks.
// needs: nothing
// provides: X_BINDING x_blocks x_decode4 x_fetch4 x_raw4

const X_BINDING: u32 = 2u; //param

@group(0) @binding(X_BINDING) var<storage, read> x_blocks: array<u32>;

struct x_raw4 {
    codes: u32,
    scale: vec2<f32>,
}

// i is a multiple of 4: four codes are pairs of bits at one place in the bytes of a word.
fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    let first = i / 256u * 21u;
    let sub = i / 16u % 16u;
    let pair =
        vec2<u32>(x_blocks[first + sub / 4u]) >> (vec2<u32>(sub % 4u * 8u) + vec2<u32>(0u, 4u));
    let scale = unpack2x16float(x_blocks[first + 20u]) * vec2<f32>(pair & vec2<u32>(15u));
    let word = x_blocks[first + 4u + i / 128u % 2u * 8u + i % 32u / 4u];
    return x_raw4(word >> (i / 32u % 4u * 2u), scale);
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    let codes = (vec4<u32>(raw.codes) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(3u);
    return raw.scale.x * vec4<f32>(codes) - raw.scale.y;
}
