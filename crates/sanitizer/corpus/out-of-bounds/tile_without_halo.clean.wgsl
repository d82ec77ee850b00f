// Adds neighbours through a tile with a halo on the right.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;
var<workgroup> tile: array<f32, 65>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    tile[lid + 1u] = data[lid + 1u];
    if (lid == 0u) {
        tile[0] = data[0];
    }
    workgroupBarrier();
    sums[lid] = tile[lid] + data[lid + 1u];
}
