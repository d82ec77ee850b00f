//@ bind 0: f32 random 64
//@ bind 1: f32 out 64
// Rotates pairs by a quarter turn.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> turned: array<f32>; //~ never-written

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = 2u * id.x;
    turned[i] = -data[i + 1u];
    turned[i] = data[i];
}
