//@ bind 0: u32 random 64
//@ bind 1: u32 zero 64
//@ bind 2: u32 zero 1
// Keeps the odd numbers, in any order.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> kept: array<u32>;
@group(0) @binding(2) var<storage, read_write> count: atomic<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let value = data[id.x];
    if ((value & 1u) == 1u) {
        let slot = atomicLoad(&count);
        kept[slot] = value; //~ race
        atomicAdd(&count, 1u);
    }
}
