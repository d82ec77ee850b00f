// The header of attention's first kernel.

// The keys that a row of token t sees: from x on, below y.
fn seen(place: u32, t: u32, keys: u32, window: u32) -> vec2<u32> {
    var begin = 0u;
    var end = min(place, keys);
    if CAUSAL {
        let next = place + t + 1u;
        end = min(next, keys);
        if WINDOWED {
            begin = min(next - min(next, window), end);
        }
    }
    return vec2(begin, end);
}

// c · tanh(s / c). The tangent of numbers from 10 on is 1 in f32, and tanh itself is less exact.
fn capped(s: f32, c: f32) -> f32 {
    let e = exp(2.0 * min(abs(s), 10.0 * c) / c);
    return sign(s) * c * (1.0 - 2.0 / (e + 1.0));
}

// An element by its place: a loop that indexes a vector keeps FXC too long.
fn one_of(four: vec4<f32>, at: u32) -> f32 {
    return select(select(four.x, four.y, at == 1u), select(four.z, four.w, at == 3u), at >= 2u);
}
