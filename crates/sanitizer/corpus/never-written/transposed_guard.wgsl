//@ bind 0: f32 random 24
//@ bind 1: f32 out 24
// Transposes a 4 by 6 matrix.
@group(0) @binding(0) var<storage, read> matrix: array<f32>;
@group(0) @binding(1) var<storage, read_write> transposed: array<f32>; //~ never-written

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < 4u && id.y < 4u) {
        transposed[id.x * 4u + id.y] = matrix[id.y * 6u + id.x];
    }
}
