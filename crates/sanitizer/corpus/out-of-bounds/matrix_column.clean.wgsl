// Columns of a rotation, one per invocation; the fourth is the origin.
@group(0) @binding(0) var<storage, read> rotation: mat3x3<f32>;
@group(0) @binding(1) var<storage, read_write> columns: array<vec4<f32>>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) lid: u32) {
    var column = vec4<f32>(0.0, 0.0, 0.0, 1.0);
    if (lid < 3u) {
        column = vec4<f32>(rotation[lid], 0.0);
    }
    columns[lid] = column;
}
