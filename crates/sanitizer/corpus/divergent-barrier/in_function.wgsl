//@ bind 0: u32 random 64
//@ bind 1: u32 out 64
// Sorts each pair; only the first of a pair works.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> sorted: array<u32>;
var<workgroup> keys: array<u32, 64>;

fn sort_pair(i: u32) {
    let a = keys[i];
    let b = keys[i + 1u];
    keys[i] = min(a, b);
    keys[i + 1u] = max(a, b);
    workgroupBarrier(); //~ divergent-barrier
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    keys[lid] = data[lid];
    workgroupBarrier();
    if (lid % 2u == 0u) {
        sort_pair(lid);
    }
    sorted[lid] = keys[lid];
}
