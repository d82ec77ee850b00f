// Backward differences, counting down from i.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> differences: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    var previous = 0.0;
    if (i > 0u) {
        previous = data[i - 1u];
    }
    differences[i] = data[i] - previous;
}
