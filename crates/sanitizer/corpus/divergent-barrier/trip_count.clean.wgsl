// Sums a hundred numbers in strides; the subgroups keep step so that they share cache lines.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lid: u32) {
    var sum = 0.0;
    for (var base = 0u; base < 100u; base += 32u) {
        if (base + lid < 100u) {
            sum += data[base + lid];
        }
        workgroupBarrier();
    }
    sums[lid] = sum;
}
