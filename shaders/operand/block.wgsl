// An operand seen by its axes: k along the summed dimension, x along the other (M for A, N for B).

const X_K_CONTIGUOUS: bool = true; //param

fn x_base(entry: u32) -> u32 {
    return params.x_offset + entry * params.x_batch;
}

// Element (x, k), which must exist.
fn x_at(base: u32, x: u32, k: u32) -> f32 {
    if X_K_CONTIGUOUS {
        return x_load(base + x * params.x_ld + k);
    }
    return x_load(base + k * params.x_ld + x);
}

// Elements (x .. x+3, k .. k+3), a column per k with a component per x. What lies at or beyond x_end or k_end is 0 and never read.
fn x_block(base: u32, x: u32, x_end: u32, k: u32, k_end: u32) -> mat4x4<f32> {
    let nx = min(max(x_end, x) - x, 4u);
    let nk = min(max(k_end, k) - k, 4u);
    let ld = params.x_ld;
    if X_K_CONTIGUOUS {
        let first = base + x * ld + k;
        return transpose(mat4x4<f32>(
            x_load4(first, select(0u, nk, nx > 0u)),
            x_load4(first + ld, select(0u, nk, nx > 1u)),
            x_load4(first + 2u * ld, select(0u, nk, nx > 2u)),
            x_load4(first + 3u * ld, select(0u, nk, nx > 3u)),
        ));
    }
    let first = base + k * ld + x;
    return mat4x4<f32>(
        x_load4(first, select(0u, nx, nk > 0u)),
        x_load4(first + ld, select(0u, nx, nk > 1u)),
        x_load4(first + 2u * ld, select(0u, nx, nk > 2u)),
        x_load4(first + 3u * ld, select(0u, nx, nk > 3u)),
    );
}
