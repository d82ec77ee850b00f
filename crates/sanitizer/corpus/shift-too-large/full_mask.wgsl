//@ bind 0: u32 values 1,4,8,16,31,32
//@ bind 1: u32 out 6
// Masks of the lowest bits.
@group(0) @binding(0) var<storage, read> widths: array<u32>;
@group(0) @binding(1) var<storage, read_write> masks: array<u32>;

@compute @workgroup_size(6)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let width = widths[id.x];
    masks[id.x] = (1u << width) - 1u; //~ shift-too-large
}
