// Shears points.
@group(0) @binding(0) var<storage, read> points: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read_write> sheared: array<vec2<f32>>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var shear: mat2x2<f32>;
    shear[0] = vec2<f32>(1.0, 0.0);
    shear[1] = vec2<f32>(0.5, 1.0);
    sheared[id.x] = shear * points[id.x];
}
