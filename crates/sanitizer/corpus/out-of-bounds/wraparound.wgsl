//@ bind 0: f32 random 64
//@ bind 1: f32 out 64
// Backward differences, counting down from i.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> differences: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    var previous = 0.0;
    previous = data[i - 1u]; //~ out-of-bounds
    differences[i] = data[i] - previous;
}
