// Converts to Q8_0 (GGUF): signed bytes, and a scale in f16 per block. The arithmetic is that of
// crates/core/src/quant/gguf.rs, operation by operation.
// needs: BLOCK Block FLOAT_SIGN float_div float_integer float_mul float_to_half weight
// provides: Fit code_of fit put_second

struct Fit {
    inverse: u32,
    // The scale as it is stored.
    numbers: vec2<u32>,
    // Whether the format holds the block.
    holds: bool,
}

fn fit(block: Block) -> Fit {
    var largest = 0u;
    for (var i = 0u; i < BLOCK; i += 1u) {
        largest = max(largest, weight(block, i) & ~FLOAT_SIGN);
    }
    let scale = float_div(largest, 0x42fe0000u); // 127
    let stored = float_to_half(scale, false);
    return Fit(float_div(0x3f800000u, scale), vec2<u32>(stored, 0u), stored < 0x7c00u);
}

fn code_of(w: u32, fit: Fit) -> u32 {
    // If the inverse is infinite, all codes are 0.
    let x = float_mul(w, fit.inverse);
    let magnitude = float_integer(x, true);
    return select(magnitude, 0u - magnitude, x >= FLOAT_SIGN) & 0xffu;
}

fn put_second(at: u32, word: u32) {}
