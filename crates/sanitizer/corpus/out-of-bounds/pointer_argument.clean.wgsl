// A sliding window of four, shifted one to the left before each new element.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

fn shift(window: ptr<function, array<f32, 4>>) {
    for (var k = 0u; k < 3u; k++) {
        (*window)[k] = (*window)[k + 1u];
    }
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    var window = array<f32, 4>(0.0, data[i], data[i + 1u], data[i + 2u]);
    shift(&window);
    window[3] = data[i + 3u];
    sums[i] = window[0] + window[1] + window[2] + window[3];
}
