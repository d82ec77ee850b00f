// Deals rows to experts in turn.
struct Params {
    rows: u32,
    experts: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> experts: array<u32>;

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < params.rows) {
        experts[id.x] = id.x % max(params.experts, 1u);
    }
}
