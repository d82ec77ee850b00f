//@ bind 0: u32 counting 65
//@ bind 1: u32 zero 8
// A histogram of values from 0 to 64 in bins of eight.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> bins: array<atomic<u32>>;

@compute @workgroup_size(65)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let bin = data[id.x] / 8u;
    atomicAdd(&bins[bin], 1u); //~ out-of-bounds
}
