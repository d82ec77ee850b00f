// Swaps neighbours; the subgroups take different ways.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> swapped: array<u32>;
var<workgroup> tile: array<u32, 32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    tile[lid] = data[lid];
    if (subgroup == 0u) {
        subgroupBarrier();
    } else {
        subgroupBarrier();
    }
    swapped[lid] = tile[lid ^ 1u];
}
