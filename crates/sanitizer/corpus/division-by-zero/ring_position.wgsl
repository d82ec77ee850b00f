//@ bind 0: i32 values 7,-3,12,5
//@ bind 1: i32 values 4,2,0,3
//@ bind 2: i32 out 4
// Wraps positions into rings of given sizes.
@group(0) @binding(0) var<storage, read> positions: array<i32>;
@group(0) @binding(1) var<storage, read> sizes: array<i32>;
@group(0) @binding(2) var<storage, read_write> wrapped: array<i32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let size = sizes[id.x];
    let rest = positions[id.x] % size; //~ division-by-zero
    wrapped[id.x] = select(rest, rest + size, rest < 0);
}
