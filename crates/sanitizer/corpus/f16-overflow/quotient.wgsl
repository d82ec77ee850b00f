//@ option: f16-overflow
//@ bind 0: f16 values 1,50,1000,2
//@ bind 1: f16 fill 0.01 4
//@ bind 2: f32 out 4
// Divides by scales.
enable f16;
@group(0) @binding(0) var<storage, read> values: array<f16>;
@group(0) @binding(1) var<storage, read> scales: array<f16>;
@group(0) @binding(2) var<storage, read_write> quotients: array<f32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    quotients[i] = f32(values[i] / scales[i]); //~ f16-overflow
}
