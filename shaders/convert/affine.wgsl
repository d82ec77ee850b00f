// Converts to affine codes: a scale and a bias per block, in f32, f16 or bf16. The arithmetic is
// that of crates/core/src/quant/affine.rs, operation by operation.
// needs: BITS BLOCK Block FLOAT_INFINITY FLOAT_SIGN float_div float_finite float_key float_level
//        float_of_key float_rint float_sub float_to_half weight
// provides: Fit LEVELS NUMBER SMALLEST biases code_of fit number put_second

// Type of scales and biases: 0 for f32, 1 for f16, 2 for bf16.
const NUMBER: u32 = 0u; //param

const LEVELS: u32 = (1u << BITS) - 1u;
// 1e-7
const SMALLEST: u32 = 0x33d6bf95u;

@group(0) @binding(8) var<storage, read_write> biases: array<u32>;

struct Fit {
    scale: u32,
    bias: u32,
    // Scale and bias as they are stored.
    numbers: vec2<u32>,
    // Whether the format holds the block.
    holds: bool,
}

// A number of f32 as it is stored, in the type of scales and biases.
fn number(x: u32) -> u32 {
    if NUMBER == 0u {
        return x;
    }
    return float_to_half(x, NUMBER == 2u);
}

fn fit(block: Block) -> Fit {
    var low = 0xffffffffu;
    var high = 0u;
    for (var i = 0u; i < BLOCK; i += 1u) {
        let key = float_key(weight(block, i));
        low = min(low, key);
        high = max(high, key);
    }
    let least = float_of_key(low);
    let most = float_of_key(high);
    let range = float_div(float_sub(most, least), bitcast<u32>(f32(LEVELS)));
    let from_least = (least & ~FLOAT_SIGN) > (most & ~FLOAT_SIGN);
    let step = max(range, SMALLEST) | select(FLOAT_SIGN, 0u, from_least);
    let edge = select(most, least, from_least);
    let steps = float_rint(float_div(edge, step));
    let none = (steps & ~FLOAT_SIGN) == 0u;
    let scale = select(float_div(edge, steps), step, none);
    let bias = select(edge, 0u, none);
    let numbers = vec2<u32>(number(scale), number(bias));
    let infinity = vec2<u32>(number(FLOAT_INFINITY));
    let holds = float_finite(least) && float_finite(most) && all((numbers & infinity) != infinity);
    return Fit(scale, bias, numbers, holds);
}

fn code_of(w: u32, fit: Fit) -> u32 {
    return float_level(float_div(float_sub(w, fit.bias), fit.scale), LEVELS);
}

fn put_second(at: u32, word: u32) {
    biases[at] = word;
}
