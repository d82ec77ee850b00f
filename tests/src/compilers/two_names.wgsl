alias V = vec4<f32>;
@group(0) @binding(0) var<storage, read_write> a: array<vec4<f32>>;
@compute @workgroup_size(1) fn main() {
    let x = array<V, 2>(a[0], a[1]);
    let y = array<vec4<f32>, 2>(a[2], a[3]);
    a[0] = x[1] + y[1];
}
