// Sums a block, one halving per call.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> total: array<f32>;
var<workgroup> partial: array<f32, 64>;

fn halve(lid: u32, step: u32) {
    if (lid < step) {
        partial[lid] += partial[lid + step];
    }
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    partial[lid] = data[lid];
    workgroupBarrier();
    for (var step = 32u; step > 0u; step /= 2u) {
        halve(lid, step);
        workgroupBarrier();
    }
    if (lid == 0u) {
        total[0] = partial[0];
    }
}
