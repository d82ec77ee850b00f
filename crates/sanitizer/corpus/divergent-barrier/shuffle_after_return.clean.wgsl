// Adds each element's neighbour within the subgroup.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let n = arrayLength(&data);
    let i = id.x;
    let x = data[min(i, n - 1u)];
    let other = subgroupShuffleXor(x, 1u);
    if (i >= n) {
        return;
    }
    sums[i] = x + other;
}
