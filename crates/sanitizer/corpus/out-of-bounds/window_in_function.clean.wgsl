// Median of three.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> medians: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var window: array<f32, 3>;
    for (var k = 0u; k < 3u; k++) {
        window[k] = data[id.x + k];
    }
    let low = min(window[0], window[1]);
    let high = max(window[0], window[1]);
    medians[id.x] = clamp(window[2], low, high);
}
