//@ bind 0: u32 random 64
//@ bind 1: u32 out 64
// Each quarter of the workgroup applies its own operation.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;
var<workgroup> tile: array<u32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    switch (lid / 16u) {
        case 0u: {
            tile[lid] = data[lid] + 1u;
        }
        case 1u, 2u: {
            tile[lid] = data[lid] * 2u;
            workgroupBarrier(); //~ divergent-barrier
        }
        default: {
            tile[lid] = ~data[lid];
        }
    }
    result[lid] = tile[lid];
}
