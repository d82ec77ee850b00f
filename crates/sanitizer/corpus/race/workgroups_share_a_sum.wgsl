//@ grid: 4,1,1
//@ bind 0: u32 random 128
//@ bind 1: u32 zero 1
// Adds up all numbers.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> total: u32;

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
    let sum = subgroupAdd(data[id.x]);
    if (lane == 0u) {
        total += sum; //~ race
    }
}
