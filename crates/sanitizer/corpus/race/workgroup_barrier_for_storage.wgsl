//@ bind 0: f32 random 64
//@ bind 1: f32 poison 64
//@ bind 2: f32 out 64
// Two passes over a scratch buffer: squares, then differences.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> scratch: array<f32>;
@group(0) @binding(2) var<storage, read_write> differences: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    scratch[lid] = data[lid] * data[lid]; //~ also
    workgroupBarrier();
    let left = scratch[(lid + 63u) % 64u]; //~ race
    differences[lid] = data[lid] * data[lid] - left;
}
