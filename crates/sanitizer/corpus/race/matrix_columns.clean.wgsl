// Normalises the columns of a matrix, one invocation each.
@group(0) @binding(0) var<storage, read> columns: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> result: mat4x4<f32>;
var<workgroup> basis: mat4x4<f32>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid == 0u) {
        basis = mat4x4<f32>();
    }
    workgroupBarrier();
    basis[lid] = normalize(columns[lid]);
    workgroupBarrier();
    if (lid == 0u) {
        result = basis;
    }
}
