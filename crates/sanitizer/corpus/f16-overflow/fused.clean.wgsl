// y = x x + c in halves.
enable f16;
@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read> c: array<f16>;
@group(0) @binding(2) var<storage, read_write> y: array<f16>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    y[i] = fma(x[i] / 4.0h, x[i], c[i]);
}
