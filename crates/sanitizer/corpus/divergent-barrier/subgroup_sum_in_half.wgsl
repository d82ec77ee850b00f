//@ bind 0: u32 random 32
//@ bind 1: u32 out 32
// Adds the sum of the first sixteen to every element.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lid: u32) {
    var sum = 0u;
    if (lid < 16u) {
        sum = subgroupAdd(data[lid]); //~ divergent-barrier
    }
    result[lid] = sum + data[lid];
}
