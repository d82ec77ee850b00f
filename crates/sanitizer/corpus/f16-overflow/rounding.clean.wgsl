// Rounds to the nearest half, in f32.
@group(0) @binding(0) var<storage, read> values: array<f32>;
@group(0) @binding(1) var<storage, read_write> rounded: array<f32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    rounded[id.x] = quantizeToF16(min(values[id.x], 65504.0));
}
