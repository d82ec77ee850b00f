// The header of softmax: the largest score of some, and how many are NaN or +∞, or the sum of
// exponentials. Infinities and NaN are told by their bits: arithmetic with them is left to the
// device.

alias Part = vec2<f32>;

const LOWEST = -3.4028234e38;

fn joined(a: Part, b: Part) -> Part {
    return vec2(max(a.x, b.x), a.y + b.y);
}

fn is_finite(scores: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(scores) & vec4(0x7fffffffu)) < vec4(0x7f800000u);
}

// `count` scores of a row from the i-th on; −∞ for the others. `at` and `step` are those of x and
// the mask.
fn scores(at: vec2<u32>, i: u32, step: vec2<u32>, count: u32, scale: f32) -> vec4<f32> {
    var s = scale * x_get(at.x, i, step.x, count);
    if MASKED {
        s += mask_get(at.y, i, step.y, count);
    }
    let there = vec4(0u, 1u, 2u, 3u) < vec4(count);
    // Of a number that is not constant.
    return select(vec4(bitcast<f32>(0xff800000u | (i & 0u))), s, there);
}

// −∞ does not count.
fn largest(s: vec4<f32>) -> Part {
    let finite = is_finite(s);
    let f = select(vec4(LOWEST), s, finite);
    let bad = select(0.0, 1.0, any(!finite & (bitcast<vec4<u32>>(s) != vec4(0xff800000u))));
    return vec2(max(max(f.x, f.y), max(f.z, f.w)), bad);
}

// e^(score − largest), which vanishes in f32 from −104 on; 0 for −∞.
fn exponentials(s: vec4<f32>, largest: f32) -> vec4<f32> {
    return select(vec4<f32>(), exp(max(s - largest, vec4(-104.0))), is_finite(s));
}
