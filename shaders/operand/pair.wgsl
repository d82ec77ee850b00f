// Eight elements by two loads of four.
// needs: x_load4_masked
// offers: X_Eight x_load8 x_widen8

alias X_Eight = mat2x4<f32>;

// Elements i .. i+7; those from n on are 0 and never read.
fn x_load8(i: u32, n: u32) -> X_Eight {
    return mat2x4<f32>(x_load4_masked(i, min(n, 4u)), x_load4_masked(i + 4u, max(n, 4u) - 4u));
}

fn x_widen8(eight: X_Eight) -> mat2x4<f32> {
    return eight;
}
