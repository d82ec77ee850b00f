// Counts the even numbers of a block.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> even: array<u32>;
var<workgroup> count: atomic<u32>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid == 0u) {
        atomicStore(&count, 0u);
    }
    workgroupBarrier();
    if (data[lid] % 2u == 0u) {
        atomicAdd(&count, 1u);
    }
    workgroupBarrier();
    if (lid == 0u) {
        even[0] = atomicLoad(&count);
    }
}
