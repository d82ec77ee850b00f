//@ bind 0: f32 random 64
//@ bind 1: f32 poison 64
//@ bind 2: f32 out 32
// Squares of the even elements, then sums of neighbouring squares.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> scratch: array<f32>;
@group(0) @binding(2) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lid: u32) {
    let i = 2u * lid;
    scratch[i] = data[i] * data[i];
    storageBarrier();
    sums[lid] = scratch[i] + scratch[i + 1u]; //~ uninitialised
}
