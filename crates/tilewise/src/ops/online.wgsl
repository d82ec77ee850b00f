// The header of softmax: the largest score of some, and the sum of the exponentials of their
// distances from it. A sum of −1 says that one of them is NaN or +∞. Infinities and NaN are told by
// their bits: arithmetic with them is left to the device.

const LOWEST = -3.4028234e38;

fn is_finite(scores: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(scores) & vec4(0x7fffffffu)) < vec4(0x7f800000u);
}

// e^distance for distances up to 0. It vanishes in f32 from −104 on.
fn vanishing(distance: vec4<f32>) -> vec4<f32> {
    return exp(max(distance, vec4(-104.0)));
}

// Of the first `count` scores. −∞ does not count.
fn block(scores: vec4<f32>, count: u32) -> vec2<f32> {
    let there = vec4(0u, 1u, 2u, 3u) < vec4(count);
    let masked = bitcast<vec4<u32>>(scores) == vec4(0xff800000u);
    let finite = is_finite(scores);
    if any(there & !finite & !masked) {
        return vec2(LOWEST, -1.0);
    }
    let counted = there & finite;
    let s = select(vec4(LOWEST), scores, counted);
    let largest = max(max(s.x, s.y), max(s.z, s.w));
    let e = select(vec4<f32>(), vanishing(s - largest), counted);
    return vec2(largest, (e.x + e.y) + (e.z + e.w));
}

fn joined(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    let largest = max(a.x, b.x);
    let e = exp(max(vec2(a.x, b.x) - largest, vec2(-104.0)));
    return vec2(largest, select(a.y * e.x + b.y * e.y, -1.0, a.y < 0.0 || b.y < 0.0));
}
