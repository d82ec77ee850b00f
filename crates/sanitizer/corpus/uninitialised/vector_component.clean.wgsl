// Lengths of points in the plane.
@group(0) @binding(0) var<storage, read> points: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read_write> lengths: array<f32>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var point: vec3<f32>;
    point.x = points[id.x].x;
    point.y = points[id.x].y;
    point.z = 0.0;
    lengths[id.x] = length(point);
}
