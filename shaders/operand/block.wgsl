// Elements of an operand by their place along its axes.
// needs: X_K_CONTIGUOUS params x_line x_load x_load4 x_load4_masked
// offers: x_at x_block x_line4

// Element (x, k), which must exist.
fn x_at(base: u32, x: u32, k: u32) -> f32 {
    if X_K_CONTIGUOUS {
        return x_load(base + x_line(x) * params.x_ld + k);
    }
    return x_load(base + k * params.x_ld + x);
}

// The lines of x .. x+3; the last one again for each from x_end on.
fn x_line4(x: u32, x_end: u32) -> vec4<u32> {
    let last = vec4<u32>(x_end - 1u);
    let own = min(x + vec4<u32>(0u, 1u, 2u, 3u), last);
    return vec4<u32>(x_line(own.x), x_line(own.y), x_line(own.z), x_line(own.w));
}

// Elements (x .. x+3, k .. k+3), a column per k with a component per x. What lies at or beyond
// x_end or k_end is 0 and never read.
fn x_block(base: u32, x: u32, x_end: u32, k: u32, k_end: u32) -> mat4x4<f32> {
    let ld = params.x_ld;
    var at = base + (k + vec4<u32>(0u, 1u, 2u, 3u)) * ld + x;
    if X_K_CONTIGUOUS {
        at = base + x_line4(x, x_end) * ld + k;
    }
    var lines: mat4x4<f32>;
    if x + 4u <= x_end && k + 4u <= k_end {
        lines = mat4x4<f32>(x_load4(at.x), x_load4(at.y), x_load4(at.z), x_load4(at.w));
    } else {
        let nx = min(max(x_end, x) - x, 4u);
        let nk = min(max(k_end, k) - k, 4u);
        let count = select(nk, nx, X_K_CONTIGUOUS);
        let length = select(nx, nk, X_K_CONTIGUOUS);
        lines = mat4x4<f32>(
            x_load4_masked(at.x, select(0u, length, count > 0u)),
            x_load4_masked(at.y, select(0u, length, count > 1u)),
            x_load4_masked(at.z, select(0u, length, count > 2u)),
            x_load4_masked(at.w, select(0u, length, count > 3u)),
        );
    }
    if X_K_CONTIGUOUS {
        return transpose(lines);
    }
    return lines;
}
