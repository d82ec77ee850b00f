// Points of a parabola; the fourth word of each element is padding.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> points: array<vec3<f32>>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x = data[id.x];
    points[id.x] = vec3<f32>(x, x * x, 0.0);
}
