// Divides by the length, kept once per workgroup.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> scaled: array<f32>;
var<workgroup> inverse_length: f32;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid == 0u) {
        inverse_length = 1.0 / f32(arrayLength(&data));
    }
    workgroupBarrier();
    scaled[lid] = data[lid] * inverse_length;
}
