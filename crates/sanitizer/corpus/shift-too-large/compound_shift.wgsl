//@ bind 0: u32 values 1,5,200,3
//@ bind 1: u32 out 4
// Moves each value to the top of its word.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> normalised: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var x = data[id.x] & ~1u;
    x <<= countLeadingZeros(x); //~ shift-too-large
    normalised[id.x] = x;
}
