//@ bind 0: f32 random 64
//@ bind 1: f32 out 32
// Adds up pairs in the tile.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> pairs: array<f32>;
var<workgroup> sums: array<f32, 32>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid < 32u) {
        sums[lid] = 0.0;
    }
    workgroupBarrier();
    let sum = &sums[lid / 2u];
    *sum += data[lid]; //~ race
    workgroupBarrier();
    if (lid < 32u) {
        pairs[lid] = sums[lid];
    }
}
