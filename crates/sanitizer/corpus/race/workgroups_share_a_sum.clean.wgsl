// Adds up all numbers.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> total: atomic<u32>;

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
    let sum = subgroupAdd(data[id.x]);
    if (lane == 0u) {
        atomicAdd(&total, sum);
    }
}
