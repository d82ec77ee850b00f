//@ option: f16-overflow
//@ bind 0: f16 fill 128 16
//@ bind 1: f32 out 4
// Squared lengths of vectors of halves.
enable f16;
@group(0) @binding(0) var<storage, read> vectors: array<vec4<f16>>;
@group(0) @binding(1) var<storage, read_write> lengths: array<f32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let v = vectors[id.x];
    lengths[id.x] = f32(dot(v, v)); //~ f16-overflow
}
