//@ bind 0: f32 random 32
//@ bind 1: f32 out 1
// Sums 32 numbers in one subgroup.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> total: array<f32>;
var<workgroup> sums: array<f32, 32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lid: u32) {
    sums[lid] = data[lid];
    workgroupBarrier();
    for (var step = 16u; step > 0u; step /= 2u) {
        if (lid < step) {
            sums[lid] += sums[lid + step]; //~ race
        }
    }
    if (lid == 0u) {
        total[0] = sums[0];
    }
}
