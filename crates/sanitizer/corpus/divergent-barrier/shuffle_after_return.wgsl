//@ bind 0: f32 random 30
//@ bind 1: f32 out 30
// Adds each element's neighbour within the subgroup.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let n = arrayLength(&data);
    let i = id.x;
    if (i >= n) {
        return;
    }
    let x = data[i];
    let other = subgroupShuffleXor(x, 1u); //~ divergent-barrier
    sums[i] = x + other;
}
