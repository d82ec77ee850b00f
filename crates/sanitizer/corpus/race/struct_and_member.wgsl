//@ bind 0: u32 counting 64
//@ bind 1: u32 out 2
// The largest of the first and the last element, and where it lies.
struct Best {
    value: u32,
    index: u32,
}
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: Best;
var<workgroup> best: Best;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid == 0u) {
        best = Best(max(data[0], data[63]), 0u); //~ also
    }
    if (lid == 63u && data[63] > data[0]) {
        best.index = 63u; //~ race
    }
    workgroupBarrier();
    if (lid == 0u) {
        result = best;
    }
}
