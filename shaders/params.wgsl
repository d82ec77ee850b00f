// The numbers of one pass. `Params` in crates/core/src/kernel.rs has the same fields in the same order.
// needs: nothing
// provides: Params linear_id params

struct Params {
    m: u32,
    n: u32,
    k: u32,
    entries: u32,
    a_offset: u32,
    a_ld: u32,
    a_batch: u32,
    b_offset: u32,
    b_ld: u32,
    b_batch: u32,
    c_offset: u32,
    c_ld: u32,
    c_batch: u32,
    bias_offset: u32,
    bias_ld: u32,
    bias_batch: u32,
    residual_offset: u32,
    residual_ld: u32,
    residual_batch: u32,
    alpha: f32,
    beta: f32,
    tiles_m: u32,
    tiles_n: u32,
    splits: u32,
    k_split: u32,
    grid_x: u32,
    c_words: u32,
    parts: u32,
    first_row: u32,
    first_group: u32,
    pad0: u32,
    pad1: u32,
}

@group(0) @binding(0) var<uniform> params: Params;

// Grids are linearised, because one dimension ends at 65,535 workgroups.
fn linear_id(workgroup: vec3<u32>) -> u32 {
    return workgroup.y * params.grid_x + workgroup.x;
}
