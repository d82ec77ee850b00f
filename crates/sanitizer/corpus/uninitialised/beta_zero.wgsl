//@ bind 0: f32 values 2,0
//@ bind 1: f32 random 16
//@ bind 2: f32 out 16
// C = alpha A + beta C.
struct Params {
    alpha: f32,
    beta: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var result = params.alpha * a[id.x];
    result = fma(params.beta, c[id.x], result); //~ uninitialised
    c[id.x] = result;
}
