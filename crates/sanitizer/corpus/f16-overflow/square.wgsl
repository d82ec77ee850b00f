//@ option: f16-overflow
//@ bind 0: f16 values 1,-3,100,255,300,0.5,2,8
//@ bind 1: f32 out 8
// Energies.
enable f16;
@group(0) @binding(0) var<storage, read> data: array<f16>;
@group(0) @binding(1) var<storage, read_write> energies: array<f32>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x = data[id.x];
    energies[id.x] = f32(x * x); //~ f16-overflow
}
