// Wraps positions into rings of given sizes.
@group(0) @binding(0) var<storage, read> positions: array<i32>;
@group(0) @binding(1) var<storage, read> sizes: array<i32>;
@group(0) @binding(2) var<storage, read_write> wrapped: array<i32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let size = max(sizes[id.x], 1);
    let rest = positions[id.x] % size;
    wrapped[id.x] = select(rest, rest + size, rest < 0);
}
