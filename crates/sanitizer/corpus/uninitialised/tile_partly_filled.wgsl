//@ bind 0: f32 random 60
//@ bind 1: f32 out 1
// Sums 60 numbers in a tile of 64.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> sum: array<f32>;
var<workgroup> tile: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid < arrayLength(&data)) {
        tile[lid] = data[lid];
    }
    workgroupBarrier();
    if (lid == 0u) {
        var total = 0.0;
        for (var i = 0u; i < 64u; i++) {
            total += tile[i]; //~ uninitialised
        }
        sum[0] = total;
    }
}
