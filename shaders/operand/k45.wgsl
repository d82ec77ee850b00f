// Operand in Q4_K or Q5_K (GGUF): blocks of 256 along K in sub-blocks of 32. A block is d and dmin
// in f16, 12 bytes with 8 scales and 8 minima of 6 bits, 32 bytes of fifth bits in Q5_K, and 128
// bytes whose low nibbles are a sub-block and whose high ones the next. Rows are whole blocks.
// needs: counted
// provides: X_BINDING X_HIGH X_WORDS x_blocks x_decode4 x_fetch4 x_raw4 x_scale

const X_BINDING: u32 = 2u; //param
const X_HIGH: u32 = 0u; //param

const X_WORDS: u32 = 36u + 8u * X_HIGH;

@group(0) @binding(X_BINDING) var<storage, read> x_blocks: array<u32>;

// Scale and minimum of sub-block j of the block that begins at a word.
fn x_scale(first: u32, j: u32) -> vec2<f32> {
    let at = j % 4u * 8u;
    let low = vec2<u32>(x_blocks[first + 1u], x_blocks[first + 2u]) >> vec2<u32>(at);
    var scale = low & vec2<u32>(63u);
    if j >= 4u {
        let pair = vec2<u32>(x_blocks[first + 3u]) >> vec2<u32>(at, at + 4u);
        scale =
            (pair & vec2<u32>(15u)) | (((low >> vec2<u32>(6u)) & vec2<u32>(3u)) << vec2<u32>(4u));
    }
    return unpack2x16float(x_blocks[first]) * vec2<f32>(scale);
}

struct x_raw4 {
    codes: u32,
    scale: vec2<f32>,
}

// i is a multiple of 4: four codes are the low or the high nibbles of a word. They come as bytes.
fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    let first = i / 256u * X_WORDS;
    let j = i / 32u % 8u;
    let word = i % 32u / 4u;
    var codes =
        (x_blocks[first + 4u + 8u * X_HIGH + j / 2u * 8u + word] >> (j % 2u * 4u)) & 0x0f0f0f0fu;
    if X_HIGH == 1u {
        codes |= ((x_blocks[first + 4u + word] >> j) & 0x01010101u) << 4u;
    }
    return x_raw4(codes, x_scale(first, j));
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    return raw.scale.x * counted(raw.codes) - raw.scale.y;
}
