//@ grid: 2,1,1
//@ bind 0: f32 random 129
//@ bind 1: f32 out 128
// Mean of each element and its right neighbour.
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> copy: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    let mean = 0.5 * (data[i] + data[i + 1u]); //~ race
    storageBarrier();
    data[i] = mean; //~ race
    copy[i] = mean;
}
