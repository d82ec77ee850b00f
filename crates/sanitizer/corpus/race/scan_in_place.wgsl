//@ bind 0: u32 random 64
//@ bind 1: u32 out 64
// Inclusive scan in one buffer.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> scanned: array<u32>;
var<workgroup> tile: array<u32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    tile[lid] = data[lid];
    for (var offset = 1u; offset < 64u; offset *= 2u) {
        workgroupBarrier();
        var value = tile[lid];
        if (lid >= offset) {
            value += tile[lid - offset]; //~ also
        }
        tile[lid] = value; //~ race
    }
    scanned[lid] = tile[lid];
}
