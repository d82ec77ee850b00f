// Divides by scales.
enable f16;
@group(0) @binding(0) var<storage, read> values: array<f16>;
@group(0) @binding(1) var<storage, read> scales: array<f16>;
@group(0) @binding(2) var<storage, read_write> quotients: array<f32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    quotients[i] = f32(values[i]) / f32(scales[i]);
}
