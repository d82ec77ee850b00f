//@ bind 0: f32 random 64
//@ bind 1: u32 zero 32
// Packs floats as halves, two to a word.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> halves: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    let bits = pack2x16float(vec2<f32>(data[lid], 0.0));
    halves[lid / 2u] |= bits << (16u * (lid % 2u)); //~ race
}
