// Lines that are exchanged in pairs.
fn x_line(x: u32) -> u32 {
    return x ^ 1u;
}
fn x_summed(x: u32, sums: vec4<f32>) -> vec4<f32> {
    return sums;
}
