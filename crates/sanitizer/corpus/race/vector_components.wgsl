//@ bind 0: f32 random 64
//@ bind 1: f32 out 64
// Gathers scalars into vectors, then stores the vectors.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> packed: array<vec4<f32>>;
var<workgroup> tile: array<vec4<f32>, 16>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid < 16u) {
        tile[lid] = vec4<f32>();
    }
    workgroupBarrier();
    var word = tile[lid / 4u]; //~ also
    word[lid % 4u] = data[lid];
    tile[lid / 4u] = word; //~ race
    workgroupBarrier();
    if (lid < 16u) {
        packed[lid] = tile[lid];
    }
}
