// Halves thirty numbers, four per invocation.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> halved: array<f32>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let n = arrayLength(&data);
    let first = 4u * id.x;
    if (first + 4u <= n) {
        for (var k = 0u; k < 4u; k++) {
            halved[first + k] = 0.5 * data[first + k];
        }
    } else {
        for (var i = first; i < n; i++) {
            halved[i] = 0.5 * data[i];
        }
    }
}
