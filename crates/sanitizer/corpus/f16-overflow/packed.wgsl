//@ option: f16-overflow
//@ bind 0: f32 values 1,2,3,-100000,5,6,7,8
//@ bind 1: u32 out 4
// Packs pairs of floats.
@group(0) @binding(0) var<storage, read> pairs: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read_write> words: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    words[id.x] = pack2x16float(pairs[id.x]); //~ f16-overflow
}
