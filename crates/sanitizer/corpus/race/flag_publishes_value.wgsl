//@ zero-init: workgroup
//@ bind 0: f32 random 64
//@ bind 1: f32 zero 64
// The first invocation publishes a pivot; those that see the flag use it.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> ratios: array<f32>;
var<workgroup> ready: atomic<u32>;
var<workgroup> pivot: f32;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid == 0u) {
        pivot = data[0]; //~ also
        atomicStore(&ready, 1u);
    }
    if (atomicLoad(&ready) == 1u) {
        ratios[lid] = data[lid] / pivot; //~ race
    }
}
