//@ bind 0: f32 random 65
//@ bind 1: f32 out 64
// Adds each element's right neighbour; the last invocation fetches the halo.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> pairs: array<f32>;
var<workgroup> tile: array<f32, 65>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    tile[lid] = data[lid]; //~ also
    if (lid >= 62u) {
        tile[lid + 1u] = data[lid + 1u]; //~ race
    }
    workgroupBarrier();
    pairs[lid] = tile[lid] + tile[lid + 1u];
}
