// The header of softmax: the largest score of some, and the sum of the exponentials of their
// distances from it. A sum of −1 says that one of them is NaN or +∞. Infinities and NaN are told by
// their bits: arithmetic with them is left to the device.

const LOWEST = -3.4028234e38;

fn is_masked(score: f32) -> bool {
    return bitcast<u32>(score) == 0xff800000u;
}

// e^distance for distances up to 0. It vanishes in f32 from −104 on.
fn vanishing(distance: f32) -> f32 {
    return exp(max(distance, -104.0));
}

fn single(score: f32) -> vec2<f32> {
    if is_masked(score) {
        return vec2(LOWEST, 0.0);
    }
    let finite = (bitcast<u32>(score) & 0x7fffffffu) < 0x7f800000u;
    return vec2(select(LOWEST, score, finite), select(-1.0, 1.0, finite));
}

fn joined(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    let largest = max(a.x, b.x);
    let sum = a.y * vanishing(a.x - largest) + b.y * vanishing(b.x - largest);
    return vec2(largest, select(sum, -1.0, a.y < 0.0 || b.y < 0.0));
}
