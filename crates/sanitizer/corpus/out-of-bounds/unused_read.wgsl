//@ bind 0: f32 random 64
//@ bind 1: f32 out 64
// Touches the next line of the input early.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> doubled: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    _ = data[id.x + 16u]; //~ out-of-bounds
    doubled[id.x] = 2.0 * data[id.x];
}
