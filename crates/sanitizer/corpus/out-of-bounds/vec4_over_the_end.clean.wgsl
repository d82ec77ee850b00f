// Sums of fours of a vector of 14.
@group(0) @binding(0) var<storage, read> data: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    var four: vec4<f32>;
    if (4u * i + 4u <= 14u) {
        four = data[i];
    } else {
        four = vec4<f32>(data[i].x, data[i].y, 0.0, 0.0);
    }
    sums[i] = dot(four, vec4<f32>(1.0));
}
