// Elements of an operand by their place along its axes.

// Element (x, k), which must exist.
fn x_at(base: u32, x: u32, k: u32) -> f32 {
    if X_K_CONTIGUOUS {
        return x_load(base + x * params.x_ld + k);
    }
    return x_load(base + k * params.x_ld + x);
}

// Elements (x .. x+3, k .. k+3), a column per k with a component per x. What lies at or beyond x_end or k_end is 0 and never read.
fn x_block(base: u32, x: u32, x_end: u32, k: u32, k_end: u32) -> mat4x4<f32> {
    let ld = params.x_ld;
    let first = base + select(k * ld + x, x * ld + k, X_K_CONTIGUOUS);
    var lines: mat4x4<f32>;
    if x + 4u <= x_end && k + 4u <= k_end {
        lines = mat4x4<f32>(x_load4(first), x_load4(first + ld), x_load4(first + 2u * ld), x_load4(first + 3u * ld));
    } else {
        let nx = min(max(x_end, x) - x, 4u);
        let nk = min(max(k_end, k) - k, 4u);
        let count = select(nk, nx, X_K_CONTIGUOUS);
        let length = select(nx, nk, X_K_CONTIGUOUS);
        lines = mat4x4<f32>(
            x_load4_part(first, select(0u, length, count > 0u)),
            x_load4_part(first + ld, select(0u, length, count > 1u)),
            x_load4_part(first + 2u * ld, select(0u, length, count > 2u)),
            x_load4_part(first + 3u * ld, select(0u, length, count > 3u)),
        );
    }
    if X_K_CONTIGUOUS {
        return transpose(lines);
    }
    return lines;
}
