// Squares of the even elements, then sums of neighbouring squares.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> scratch: array<f32>;
@group(0) @binding(2) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lid: u32) {
    let i = 2u * lid;
    scratch[i] = data[i] * data[i];
    storageBarrier();
    sums[lid] = scratch[i] + scratch[(i + 2u) % 64u];
}
