// Forward differences; the last element is its own.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> differences: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i + 1u < arrayLength(&data)) {
        differences[i] = data[i + 1u] - data[i];
    } else {
        differences[i] = -data[i];
    }
}
