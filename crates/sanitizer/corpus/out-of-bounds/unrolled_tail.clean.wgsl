// y = A x for 4 rows of 10, four columns at a time.
const K: u32 = 10u;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x * K;
    var sum = 0.0;
    for (var k = 0u; k < K; k += 4u) {
        for (var u = 0u; u < 4u; u++) {
            if (k + u < K) {
                sum += a[row + k + u] * x[k + u];
            }
        }
    }
    y[id.x] = sum;
}
