//@ grid: 2,1,1
//@ bind 0: f32 random 128
//@ bind 1: f32 out 2
// Sums each block by halving.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;
var<workgroup> partial: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    partial[lid] = data[group.x * 64u + lid];
    workgroupBarrier();
    for (var step = 32u; step > 0u; step /= 2u) {
        if (lid < step) {
            partial[lid] += partial[lid + step]; //~ race
        }
    }
    workgroupBarrier();
    if (lid == 0u) {
        sums[group.x] = partial[0];
    }
}
