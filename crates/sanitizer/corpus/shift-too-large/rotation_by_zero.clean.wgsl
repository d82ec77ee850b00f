// Rotates each word left by its position.
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> rotated: array<u32>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x = words[id.x];
    let r = id.x;
    rotated[id.x] = (x << r) | (x >> ((32u - r) % 32u));
}
