// Sums of four, added up in the output.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    sums[id.x] = 0.0;
    for (var k = 0u; k < 4u; k++) {
        sums[id.x] += data[id.x * 4u + k];
    }
}
