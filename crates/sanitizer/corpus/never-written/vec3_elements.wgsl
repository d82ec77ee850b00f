//@ bind 0: f32 random 8
//@ bind 1: f32 out 32
//@ rows 1: 8 x 3 stride 4
// Points of a parabola; the fourth word of each element is padding.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> points: array<vec3<f32>>; //~ never-written

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x = data[id.x];
    points[id.x].x = x;
    points[id.x].y = x * x;
}
