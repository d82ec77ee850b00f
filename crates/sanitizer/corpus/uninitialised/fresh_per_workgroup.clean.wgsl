// Looks codes up in a table kept in workgroup memory.
@group(0) @binding(0) var<storage, read> codebook: array<f32>;
@group(0) @binding(1) var<storage, read> codes: array<u32>;
@group(0) @binding(2) var<storage, read_write> values: array<f32>;
var<workgroup> table: array<f32, 16>;

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    if (lid < 16u) {
        table[lid] = codebook[lid];
    }
    workgroupBarrier();
    values[id.x] = table[codes[id.x] & 15u];
}
