// Masks of the lowest bits.
@group(0) @binding(0) var<storage, read> widths: array<u32>;
@group(0) @binding(1) var<storage, read_write> masks: array<u32>;

@compute @workgroup_size(6)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let width = widths[id.x];
    masks[id.x] = 0xffffffffu >> (32u - max(width, 1u));
}
