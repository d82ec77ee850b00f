// Converts to the microscaling formats: codes of e2m1 in 4 bits or e4m3 in 8, and a scale per
// block, a power of two or in e4m3. The arithmetic is that of crates/core/src/quant/mx.rs,
// operation by operation.
// needs: BITS BLOCK Block FLOAT_SIGN float_div float_finite float_mul float_pack float_unpack
//        weight
// provides: BEYOND_E4M3 E4M3_SCALE Fit LARGEST MOST code_of e2m1 e4m3 fit number_of_e4m3
//        power_of_two put_second

// Whether scales are in e4m3.
const E4M3_SCALE: bool = false; //param

// LARGEST is the largest weight under a power of two: 3.5 · 2^126 for codes of e2m1, the last
// number before 248 · 2^120 for those of e4m3. BEYOND_E4M3 is the largest scale that may be wanted
// in e4m3: 480.
const LARGEST: u32 = select(0x7f77ffffu, 0x7f600000u, BITS == 4u);
const BEYOND_E4M3: u32 = 0x43f00000u;
// The largest code: 6 or 448.
const MOST: u32 = select(0x43e00000u, 0x40c00000u, BITS == 4u);

struct Fit {
    scale: u32,
    // The byte that is stored.
    numbers: vec2<u32>,
    // Whether the format holds the block.
    holds: bool,
}

// The nearest code of a finite number; ties go to the even one. Larger numbers get the largest
// code.
fn e4m3(x: u32) -> u32 {
    let magnitude = x & ~FLOAT_SIGN;
    let sign = (x & FLOAT_SIGN) >> 24u;
    return sign | min(float_pack(float_unpack(magnitude), 3u, -6), 0x7eu);
}

// The number of a code without a sign.
fn number_of_e4m3(code: u32) -> u32 {
    if code < 8u { // multiples of 2^-9
        return float_mul(bitcast<u32>(f32(code)), 0x3b000000u);
    }
    return (code << 20u) + 0x3c000000u;
}

// The nearest code, by the ends of the ranges of each magnitude: a tie goes to the smaller one. No
// zero is negative.
fn e2m1(x: u32) -> u32 {
    var ends = array<u32, 7>(
        0x3e800000u, 0x3f400000u, 0x3fa00000u, 0x3fe00000u, 0x40200000u, 0x40600000u, 0x40a00000u
    );
    var magnitude = 0u;
    for (var i = 0u; i < 7u; i += 1u) {
        magnitude += select(0u, 1u, (x & ~FLOAT_SIGN) > ends[i]);
    }
    return magnitude | select(0u, (x >> 28u) & 8u, magnitude > 0u);
}

// The byte of the smallest power of two that is not below a positive number: 127 plus its exponent,
// and at least 0. A block of zeros has 127.
fn power_of_two(x: u32) -> u32 {
    if x == 0u {
        return 127u;
    }
    if x <= 0x400000u { // 2^-127
        return 0u;
    }
    return (x + 0x7fffffu) >> 23u;
}

fn fit(block: Block) -> Fit {
    var largest = 0u;
    for (var i = 0u; i < BLOCK; i += 1u) {
        largest = max(largest, weight(block, i) & ~FLOAT_SIGN);
    }
    let wanted = float_div(largest, MOST);
    let finite = float_finite(largest);
    if E4M3_SCALE {
        let byte = e4m3(wanted);
        return Fit(number_of_e4m3(byte), vec2<u32>(byte, 0u), finite && wanted <= BEYOND_E4M3);
    }
    let byte = power_of_two(wanted);
    let scale = max(byte << 23u, 0x400000u);
    return Fit(scale, vec2<u32>(byte, 0u), largest <= LARGEST);
}

fn code_of(w: u32, fit: Fit) -> u32 {
    // Every weight is zero under a scale that was rounded to zero.
    let x = select(float_div(w, fit.scale), 0u, fit.scale == 0u);
    if BITS == 4u {
        return e2m1(x);
    }
    return e4m3(x);
}

fn put_second(at: u32, word: u32) {}
