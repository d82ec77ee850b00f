//@ grid: 2,2,1
//@ bind 0: f32 random 256
//@ bind 1: f32 out 256
// Transposes a 16 by 16 matrix in tiles of 8 by 8.
const N: u32 = 16u;
@group(0) @binding(0) var<storage, read> matrix: array<f32>;
@group(0) @binding(1) var<storage, read_write> transposed: array<f32>;
var<workgroup> tile: array<array<f32, 9>, 8>;

@compute @workgroup_size(8, 8)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y * 8u + local.y;
    let column = group.x * 8u + local.x;
    tile[local.y][local.x] = matrix[row * N + column]; //~ also
    let to_row = group.x * 8u + local.y;
    let to_column = group.y * 8u + local.x;
    transposed[to_row * N + to_column] = tile[local.x][local.y]; //~ race
}
