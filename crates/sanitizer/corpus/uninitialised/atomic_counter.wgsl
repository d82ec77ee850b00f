//@ bind 0: u32 random 64
//@ bind 1: u32 out 1
// Counts the even numbers of a block.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> even: array<u32>;
var<workgroup> count: atomic<u32>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (data[lid] % 2u == 0u) {
        atomicAdd(&count, 1u); //~ uninitialised
    }
    workgroupBarrier();
    if (lid == 0u) {
        even[0] = atomicLoad(&count);
    }
}
