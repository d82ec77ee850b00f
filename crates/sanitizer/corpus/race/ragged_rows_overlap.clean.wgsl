// One workgroup scales each segment; the last element of a segment is its end, exclusive.
@group(0) @binding(0) var<storage, read> offsets: array<u32>;
@group(0) @binding(1) var<storage, read> data: array<f32>;
@group(0) @binding(2) var<storage, read_write> scaled: array<f32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let start = offsets[group.x];
    let end = offsets[group.x + 1u];
    let i = start + lid;
    if (i < end && i < arrayLength(&data)) {
        scaled[i] = data[i] * f32(group.x + 2u);
    }
}
