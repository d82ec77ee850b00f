// Stores an odd number of halves, two per invocation.
enable f16;
override N: u32;
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> halves: array<f16>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = 2u * id.x;
    if (i + 1u < N) {
        halves[i] = f16(data[i]);
        halves[i + 1u] = f16(data[i + 1u]);
    } else if (i < N) {
        halves[i] = f16(data[i]);
    }
}
