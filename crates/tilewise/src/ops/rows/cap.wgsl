// The header of texts whose scores may have a cap.

// cap · tanh(s/cap). The exponential is far from overflow; NaN stays.
fn capped(s: vec4<f32>, cap: f32) -> vec4<f32> {
    let magnitude = bitcast<vec4<u32>>(s) & vec4(0x7fffffffu);
    let doubled = 2.0 * clamp(s / cap, vec4(-15.0), vec4(15.0));
    return select(cap - 2.0 * cap / (exp(doubled) + 1.0), s, magnitude > vec4(0x7f800000u));
}
