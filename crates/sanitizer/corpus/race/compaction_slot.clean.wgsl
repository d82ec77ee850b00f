// Keeps the odd numbers, in any order.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> kept: array<u32>;
@group(0) @binding(2) var<storage, read_write> count: atomic<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let value = data[id.x];
    if ((value & 1u) == 1u) {
        let slot = atomicAdd(&count, 1u);
        kept[slot] = value;
    }
}
