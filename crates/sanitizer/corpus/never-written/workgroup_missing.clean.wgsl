//@ grid: 4,1,1
// Negates a hundred numbers, 32 per workgroup.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> negated: array<f32>;

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&data)) {
        negated[id.x] = -data[id.x];
    }
}
