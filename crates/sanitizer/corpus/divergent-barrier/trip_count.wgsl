//@ bind 0: f32 random 100
//@ bind 1: f32 out 32
// Sums a hundred numbers in strides; the subgroups keep step so that they share cache lines.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lid: u32) {
    var sum = 0.0;
    for (var i = lid; i < 100u; i += 32u) {
        sum += data[i];
        workgroupBarrier(); //~ divergent-barrier
    }
    sums[lid] = sum;
}
