// The header of elementwise functions, on four elements at a time. Arguments of exp and tanh are
// clamped to a range in which neither overflows; beyond it, the result is known. Comparisons are
// written so that NaN stays NaN.

fn is_nan(x: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(x) & vec4(0x7fffffffu)) > vec4(0x7f800000u);
}

fn sigmoid(x: vec4<f32>) -> vec4<f32> {
    let f = 1.0 / (1.0 + exp(-clamp(x, vec4(-87.0), vec4(87.0))));
    return select(select(f, vec4(0.0), x < vec4(-87.0)), x, is_nan(x));
}

fn silu(x: vec4<f32>) -> vec4<f32> {
    let f = x / (1.0 + exp(-clamp(x, vec4(-87.0), vec4(87.0))));
    return select(f, vec4(0.0), x < vec4(-87.0));
}

// The gate of GPT-OSS: up + 1 times gate · sigmoid(alpha · gate), both clamped.
fn swiglu_oai(x: vec4<f32>, z: vec4<f32>, alpha: f32, limit: f32) -> vec4<f32> {
    let gate = select(x, vec4(limit), x > vec4(limit));
    let up = select(select(z, vec4(limit), z > vec4(limit)), vec4(-limit), z < vec4(-limit));
    let f = select(gate * sigmoid(alpha * gate), vec4(0.0), alpha * gate < vec4(-87.0));
    return f * (up + 1.0);
}

fn hyperbolic(x: vec4<f32>) -> vec4<f32> {
    return select(tanh(clamp(x, vec4(-15.0), vec4(15.0))), x, is_nan(x));
}

fn gelu(x: vec4<f32>) -> vec4<f32> {
    let inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);
    let f = 0.5 * x * (1.0 + tanh(clamp(inner, vec4(-15.0), vec4(15.0))));
    return select(select(f, vec4(0.0), x < vec4(-10.0)), x, x > vec4(10.0));
}

// x·Φ(x). The complement of erf is a polynomial times exp (M. Abramowitz, I. A. Stegun, "Handbook
// of Mathematical Functions", 7.1.26), wrong by 1.5e-7 at most.
fn gelu_erf(x: vec4<f32>) -> vec4<f32> {
    let z = min(abs(x) * 0.7071067811865476, vec4(9.0));
    let t = 1.0 / (1.0 + 0.3275911 * z);
    let inner = t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)));
    let tail = 0.5 * t * (0.254829592 + inner) * exp(-z * z);
    let f = select(x - x * tail, x * tail, x < vec4(0.0));
    return select(select(f, vec4(0.0), x < vec4(-12.0)), x, x > vec4(6.0));
}

// Reduces x to ±π, in two steps: the first factor has eight bits, so its products are exact.
fn turned(x: vec4<f32>) -> vec4<f32> {
    let turns = round(x * 0.15915494309189535);
    return (x - turns * 6.28125) - turns * 0.0019353071795864769;
}

// Powers of any numbers. WGSL's own pow takes no negative numbers.
fn power(x: vec4<f32>, z: vec4<f32>) -> vec4<f32> {
    let whole = floor(z) == z;
    let odd = whole & (floor(z * 0.5) * 2.0 != z);
    let zero = x == vec4(0.0);
    let magnitude = pow(select(abs(x), vec4(1.0), zero), z);
    // A power of zero is 0, or the inverse of 0.
    var f = select(magnitude, select(vec4(0.0), 1.0 / abs(x), z < vec4(0.0)), zero);
    let negative = (bitcast<vec4<u32>>(x) & vec4(0x80000000u)) != vec4(0u);
    f = select(f, -f, odd & negative);
    let undefined = (x < vec4(0.0)) & (x >= vec4(-3.4028234e38)) & !whole;
    f = select(f, bitcast<vec4<f32>>(vec4(0x7fc00000u) | bitcast<vec4<u32>>(z)), undefined);
    f = select(f, x + z, is_nan(x) | is_nan(z));
    return select(f, vec4(1.0), (z == vec4(0.0)) | (x == vec4(1.0)));
}
