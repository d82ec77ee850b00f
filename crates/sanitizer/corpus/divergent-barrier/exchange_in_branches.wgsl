//@ bind 0: f32 random 64
//@ bind 1: f32 out 64
// Exchanges the two halves of a block.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> exchanged: array<f32>;
var<workgroup> low: array<f32, 32>;
var<workgroup> high: array<f32, 32>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid < 32u) {
        low[lid] = data[lid];
        workgroupBarrier(); //~ divergent-barrier
        exchanged[lid] = high[lid];
    } else {
        high[lid - 32u] = data[lid];
        workgroupBarrier(); //~ divergent-barrier
        exchanged[lid] = low[lid - 32u];
    }
}
