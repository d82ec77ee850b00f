//@ bind 0: f32 random 256
//@ bind 1: f32 random 256
//@ bind 2: f32 out 64
// C[8, 8] = A[8, 32] B[32, 8], eight columns of A at a time.
const K: u32 = 32u;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<workgroup> a_tile: array<f32, 64>;
var<workgroup> b_tile: array<f32, 64>;

@compute @workgroup_size(8, 8)
fn main(@builtin(local_invocation_id) local: vec3<u32>) {
    let row = local.y;
    let column = local.x;
    var sum = 0.0;
    for (var k0 = 0u; k0 < K; k0 += 8u) {
        a_tile[row * 8u + column] = a[row * K + k0 + column]; //~ race
        b_tile[row * 8u + column] = b[(k0 + row) * 8u + column]; //~ race
        workgroupBarrier();
        for (var k = 0u; k < 8u; k++) {
            let x = a_tile[row * 8u + k]; //~ also
            let y = b_tile[k * 8u + column]; //~ also
            sum = fma(x, y, sum);
        }
    }
    c[row * 8u + column] = sum;
}
