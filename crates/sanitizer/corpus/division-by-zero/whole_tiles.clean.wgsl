// Orders elements by tiles of 64, as far as there are whole tiles.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> ordered: array<f32>;

@compute @workgroup_size(48)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let n = arrayLength(&data);
    let tiles = (n + 63u) / 64u;
    let tile = id.x / tiles;
    ordered[min(id.x, n - 1u)] = data[min(id.x, n - 1u)] + f32(tile);
}
