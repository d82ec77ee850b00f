// Packs floats as halves, two to a word.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> halves: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid < 32u) {
        halves[lid] = pack2x16float(vec2<f32>(data[2u * lid], data[2u * lid + 1u]));
    }
}
