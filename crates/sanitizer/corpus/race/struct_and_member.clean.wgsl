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
        best = Best(max(data[0], data[63]), 0u);
    }
    workgroupBarrier();
    if (lid == 63u && data[63] > data[0]) {
        best.index = 63u;
    }
    workgroupBarrier();
    if (lid == 0u) {
        result = best;
    }
}
