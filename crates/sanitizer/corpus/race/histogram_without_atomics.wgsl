//@ bind 0: u32 random 64
//@ bind 1: u32 out 16
// Counts the low four bits.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> histogram: array<u32>;
var<workgroup> bins: array<u32, 16>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid < 16u) {
        bins[lid] = 0u;
    }
    workgroupBarrier();
    bins[data[lid] & 15u] += 1u; //~ race
    workgroupBarrier();
    if (lid < 16u) {
        histogram[lid] = bins[lid];
    }
}
