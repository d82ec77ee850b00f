// Counts the low four bits in the output.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> histogram: array<atomic<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid < 16u) {
        atomicStore(&histogram[lid], 0u);
    }
    storageBarrier();
    atomicAdd(&histogram[data[lid] & 15u], 1u);
}
