// Three-point stencil through a tile.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> smoothed: array<f32>;
var<workgroup> tile: array<f32, 66>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    tile[lid + 1u] = data[lid + 1u];
    if (lid == 0u) {
        tile[0] = data[0];
        tile[65] = data[65];
    }
    workgroupBarrier();
    smoothed[lid] = (tile[lid] + tile[lid + 1u] + tile[lid + 2u]) / 3.0;
}
