// Counts the low four bits.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> histogram: array<u32>;
var<workgroup> bins: array<atomic<u32>, 16>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid < 16u) {
        atomicStore(&bins[lid], 0u);
    }
    workgroupBarrier();
    atomicAdd(&bins[data[lid] & 15u], 1u);
    workgroupBarrier();
    if (lid < 16u) {
        histogram[lid] = atomicLoad(&bins[lid]);
    }
}
