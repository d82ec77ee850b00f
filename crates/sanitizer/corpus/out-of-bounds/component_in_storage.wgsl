//@ bind 0: f32 random 32
//@ bind 1: f32 out 8
// Sums of the components of vectors, read one by one.
@group(0) @binding(0) var<storage, read> vectors: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var sum = 0.0;
    for (var k = 1u; k <= 4u; k++) {
        sum += vectors[id.x][k]; //~ out-of-bounds
    }
    sums[id.x] = sum;
}
