// The largest value in each quarter of a block.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> peaks: array<u32>;
var<workgroup> largest: array<atomic<u32>, 4>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid < 4u) {
        atomicStore(&largest[lid], 0u);
    }
    workgroupBarrier();
    atomicMax(&largest[lid / 16u], data[lid]);
    workgroupBarrier();
    if (lid < 4u) {
        peaks[lid] = atomicLoad(&largest[lid]);
    }
}
