//@ bind 0: f32 random 32
//@ bind 1: f32 zero 32
// Transposes a 4 by 8 matrix.
const ROWS: u32 = 4u;
const COLUMNS: u32 = 8u;
@group(0) @binding(0) var<storage, read> matrix: array<f32>;
@group(0) @binding(1) var<storage, read_write> transposed: array<f32>;

@compute @workgroup_size(8, 4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x = matrix[id.y * COLUMNS + id.x];
    transposed[id.x * COLUMNS + id.y] = x; //~ out-of-bounds
}
