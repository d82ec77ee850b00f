//@ option: f16-overflow
//@ bind 0: f16 values 200,250,16,3
//@ bind 1: f16 fill 20000 4
//@ bind 2: f16 out 4
// y = x x + c in halves.
enable f16;
@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read> c: array<f16>;
@group(0) @binding(2) var<storage, read_write> y: array<f16>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    y[i] = fma(x[i], x[i], c[i]); //~ f16-overflow
}
