//@ bind 0: f32 random 64
//@ bind 1: f32 out 64
//@ range 1: 0..60
//@ override N: 60
// Scales N elements of a larger buffer.
override N: u32;
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> scaled: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= arrayLength(&scaled)) {
        return;
    }
    scaled[id.x] = data[id.x] / f32(N); //~ out-of-bounds
}
