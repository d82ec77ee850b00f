// The header of attention's first kernels.

// The keys that a row of token t sees: from x on, below y.
fn seen(place: u32, t: u32, window: u32) -> vec2<u32> {
    if !CAUSAL {
        return vec2(0u, place);
    }
    let next = place + t + 1u;
    return vec2(next - min(next, window), next);
}

// An element by its place: a loop that indexes a vector keeps FXC too long.
fn one_of(four: vec4<f32>, at: u32) -> f32 {
    return select(select(four.x, four.y, at == 1u), select(four.z, four.w, at == 3u), at >= 2u);
}
