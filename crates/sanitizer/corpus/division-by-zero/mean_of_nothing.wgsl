//@ bind 0: u32 values 12,7,0,30
//@ bind 1: u32 values 3,2,0,5
//@ bind 2: u32 out 4
// Means of groups.
@group(0) @binding(0) var<storage, read> sums: array<u32>;
@group(0) @binding(1) var<storage, read> counts: array<u32>;
@group(0) @binding(2) var<storage, read_write> means: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    means[id.x] = sums[id.x] / counts[id.x]; //~ division-by-zero
}
