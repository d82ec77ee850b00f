//@ bind 0: f32 random 64
//@ bind 1: f32 random 64
//@ bind 2: f32 out 64
// C = A B for 8 by 8 matrices on the matrix unit; A goes through a tile.
enable wgpu_cooperative_matrix;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<workgroup> tile: array<f32, 64>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lid: u32) {
    tile[lid] = a[lid]; //~ also
    tile[lid + 32u] = a[lid + 32u]; //~ also
    let left = coopLoadT<coop_mat8x8<f32, A>>(&tile[0], 8u); //~ race
    let right = coopLoadT<coop_mat8x8<f32, B>>(&b[0], 8u);
    let product = coopMultiplyAdd(left, right, coop_mat8x8<f32, C>());
    let to = &c[0];
    coopStoreT(product, to, 8u);
}
