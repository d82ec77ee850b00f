// Squared lengths of vectors of halves.
enable f16;
@group(0) @binding(0) var<storage, read> vectors: array<vec4<f16>>;
@group(0) @binding(1) var<storage, read_write> lengths: array<f32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let v = vectors[id.x];
    lengths[id.x] = dot(vec4<f32>(v), vec4<f32>(v));
}
