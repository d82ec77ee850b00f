// Steps until the sum of neighbours passes one.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> steps: array<u32>;
var<workgroup> tile: array<f32, 8>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) lid: u32) {
    tile[lid] = data[lid];
    var sum = 0.0;
    var taken = 0u;
    for (var step = 0u; step < 4u; step++) {
        workgroupBarrier();
        if (sum <= 1.0) {
            sum += tile[(lid + step) % 8u];
            taken++;
        }
    }
    steps[lid] = taken;
}
