//@ bind 0: f32 random 20
//@ bind 1: f32 out 32
//@ rows 1: 4 x 5 stride 8
// Copies a 4 by 5 matrix into rows of 8, a vector at a time.
@group(0) @binding(0) var<storage, read> matrix: array<f32>;
@group(0) @binding(1) var<storage, read_write> padded: array<f32>; //~ never-written

@compute @workgroup_size(8, 4)
fn main(@builtin(local_invocation_id) local: vec3<u32>) {
    let row = local.y;
    let column = local.x;
    if (column < 4u) {
        padded[row * 8u + column] = matrix[row * 5u + column];
    }
}
