// The other ways to load, for loaders that fetch four elements at a time: rows are whole fours.
// needs: x_decode4 x_fetch4
// offers: x_load x_load4 x_load4_masked

fn x_load4(i: u32) -> vec4<f32> {
    return x_decode4(x_fetch4(i, 4u));
}

fn x_load(i: u32) -> f32 {
    return x_load4(i / 4u * 4u)[i % 4u];
}

// n is 0 or 4, or less in a product of a list: the operand holds the rest of the four, which counts
// for nothing.
fn x_load4_masked(i: u32, n: u32) -> vec4<f32> {
    if n == 0u {
        return vec4<f32>();
    }
    return x_load4(i);
}
