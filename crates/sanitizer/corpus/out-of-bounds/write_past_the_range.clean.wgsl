// Scales N elements of a larger buffer.
override N: u32;
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> scaled: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= N) {
        return;
    }
    scaled[id.x] = data[id.x] / f32(N);
}
