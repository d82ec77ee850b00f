//@ bind 0: f32 random 32
//@ bind 1: f32 out 64
// Repeats a block of 32.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> repeated: array<f32>;
var<workgroup> tile: array<f32, 32>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid < 32u) {
        tile[lid] = data[lid];
        workgroupBarrier(); //~ divergent-barrier
    }
    repeated[lid] = tile[lid % 32u];
}
