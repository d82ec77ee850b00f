//@ bind 0: f32 random 64
//@ bind 1: f32 random 48
//@ bind 2: f32 zero 64
// Adds two vectors of different lengths.
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> sum: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i < arrayLength(&a)) {
        sum[i] = a[i] + b[i]; //~ out-of-bounds
    }
}
