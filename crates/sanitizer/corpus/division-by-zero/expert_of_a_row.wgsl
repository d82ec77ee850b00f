//@ bind 0: u32 values 24,0
//@ bind 1: u32 out 24
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
        experts[id.x] = id.x % params.experts; //~ division-by-zero
    }
}
