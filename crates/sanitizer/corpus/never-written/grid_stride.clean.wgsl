// Doubles with a loop in strides of the grid.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> doubled: array<f32>;

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 32u;
    for (var i = id.x; i < arrayLength(&data); i += stride) {
        doubled[i] = 2.0 * data[i];
    }
}
