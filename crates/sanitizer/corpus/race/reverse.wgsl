//@ bind 0: f32 random 64
//@ bind 1: f32 out 64
// Reverses a block through a tile.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> reversed: array<f32>;
var<workgroup> tile: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    tile[lid] = data[lid]; //~ also
    reversed[lid] = tile[63u - lid]; //~ race
}
