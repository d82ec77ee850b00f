//@ override K: 8
// C[8, 8] = A[8, K] B[K, 8] on the matrix unit, for whole blocks of K.
enable wgpu_cooperative_matrix;
override K: u32;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;

@compute @workgroup_size(32)
fn main() {
    var sum = coop_mat8x8<f32, C>();
    for (var k = 0u; k < K; k += 8u) {
        let left = coopLoad<coop_mat8x8<f32, A>>(&a[k * 8u], 8u);
        let right = coopLoadT<coop_mat8x8<f32, B>>(&b[k * 8u], 8u);
        sum = coopMultiplyAdd(left, right, sum);
    }
    let to = &c[0];
    let result = sum;
    coopStoreT(result, to, 8u);
}
