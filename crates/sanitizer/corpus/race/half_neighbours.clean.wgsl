// Smooths halves in place in the tile.
enable f16;
@group(0) @binding(0) var<storage, read> data: array<f16>;
@group(0) @binding(1) var<storage, read_write> smoothed: array<f16>;
var<workgroup> tile: array<f16, 64>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    tile[lid] = data[lid];
    workgroupBarrier();
    let mean = (tile[lid] + tile[lid ^ 1u]) * 0.5h;
    workgroupBarrier();
    tile[lid] = mean;
    smoothed[lid] = tile[lid];
}
