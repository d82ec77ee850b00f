//@ bind 0: f32 random 64
//@ bind 1: f32 out 32
// Maximum of each pair.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> pooled: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let pair = id.x / 2u;
    let largest = max(data[2u * pair], data[2u * pair + 1u]);
    pooled[pair] = largest; //~ race
}
