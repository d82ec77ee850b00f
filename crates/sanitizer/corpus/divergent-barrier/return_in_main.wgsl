//@ bind 0: f32 random 48
//@ bind 1: f32 out 48
// Rotates as many numbers as there are.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> rotated: array<f32>;
var<workgroup> tile: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    let n = arrayLength(&data);
    if (lid >= n) {
        return;
    }
    tile[lid] = data[lid];
    workgroupBarrier(); //~ divergent-barrier
    rotated[lid] = tile[(lid + 1u) % n];
}
