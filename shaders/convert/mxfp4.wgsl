// To mxfp4: codes of e2m1 and a power of two per block. The arithmetic is that of
// crates/core/src/quant/mxfp4.rs.
// needs: BLOCK Block FLOAT_SIGN float_div weight
// provides: Fit LARGEST code_of codes fit put_codes put_numbers scales

// 3.5 · 2^126, beyond which the format holds nothing.
const LARGEST: u32 = 0x7f600000u;

@group(0) @binding(2) var<storage, read_write> codes: array<u32>;
@group(0) @binding(7) var<storage, read_write> scales: array<u32>;

struct Fit {
    scale: u32,
    // The byte that is stored.
    numbers: vec2<u32>,
    // Whether the format holds the block.
    holds: bool,
}

fn fit(block: Block) -> Fit {
    var largest = 0u;
    for (var i = 0u; i < BLOCK; i += 1u) {
        largest = max(largest, weight(block, i) & ~FLOAT_SIGN);
    }
    // The smallest power of two of which the largest code, 6, is not below the largest weight.
    let wanted = float_div(largest, 0x40c00000u);
    let mantissa = wanted & 0x7fffffu;
    var byte = (wanted >> 23u) + select(0u, 1u, mantissa != 0u);
    if wanted < 0x800000u { // 2^-127 or 2^-126
        byte = select(0u, 1u, mantissa > 0x400000u);
    }
    if wanted == 0u {
        byte = 127u;
    }
    let scale = select(byte << 23u, 0x400000u, byte == 0u);
    return Fit(scale, vec2<u32>(byte, 0u), largest <= LARGEST);
}

fn code_of(w: u32, fit: Fit) -> u32 {
    let x = float_div(w & ~FLOAT_SIGN, fit.scale);
    // The ends of the ranges that round to each magnitude: a tie goes to the smaller one.
    var ends = array<u32, 7>(
        0x3e800000u, 0x3f400000u, 0x3fa00000u, 0x3fe00000u, 0x40200000u, 0x40600000u, 0x40a00000u
    );
    var magnitude = 0u;
    for (var i = 0u; i < 7u; i += 1u) {
        magnitude += select(0u, 1u, x > ends[i]);
    }
    return magnitude | select(0u, 8u, w > FLOAT_SIGN && magnitude > 0u);
}

fn put_codes(at: u32, word: u32) {
    codes[at] = word;
}

fn put_numbers(at: u32, words: vec2<u32>) {
    scales[at] = words.x;
}
