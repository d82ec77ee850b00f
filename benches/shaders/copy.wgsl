// Measures the ceiling of bandwidth: every invocation copies vectors that lie a grid apart.

@group(0) @binding(0) var<storage, read> source: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> target_data: array<vec4<f32>>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let n = arrayLength(&source);
    for (var i = id.x; i < n; i += groups.x * 256u) {
        target_data[i] = source[i];
    }
}
