// Adds right neighbours in an 8 by 8 tile.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;
var<workgroup> tile: array<array<f32, 8>, 8>;

@compute @workgroup_size(8, 8)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    tile[local.y][local.x] = data[lid];
    workgroupBarrier();
    let right = tile[local.y][min(local.x + 1u, 7u)];
    sums[lid] = tile[local.y][local.x] + right;
}
