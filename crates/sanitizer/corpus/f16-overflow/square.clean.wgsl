// Energies.
enable f16;
@group(0) @binding(0) var<storage, read> data: array<f16>;
@group(0) @binding(1) var<storage, read_write> energies: array<f32>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x = data[id.x];
    energies[id.x] = f32(x) * f32(x);
}
