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
    if (params.beta != 0.0) {
        result = fma(params.beta, c[id.x], result);
    }
    c[id.x] = result;
}
