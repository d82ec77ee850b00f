// Stores results as halves.
enable f16;
@group(0) @binding(0) var<storage, read> results: array<f32>;
@group(0) @binding(1) var<storage, read_write> stored: array<f16>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x = results[id.x];
    stored[id.x] = f16(clamp(x, -65504.0, 65504.0));
}
