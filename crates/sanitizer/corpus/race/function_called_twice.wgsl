//@ bind 0: f32 random 32
//@ bind 1: f32 random 32
//@ bind 2: f32 out 64
// The largest absolute value of two vectors.
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> largest: array<vec2<f32>>;
var<workgroup> shared_values: array<f32, 32>;

fn block_max(lid: u32, value: f32) -> f32 {
    shared_values[lid] = value; //~ race
    workgroupBarrier();
    var result = value;
    for (var i = 0u; i < 32u; i++) {
        result = max(result, shared_values[i]); //~ also
    }
    return result;
}

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lid: u32) {
    let x_max = block_max(lid, abs(x[lid]));
    let y_max = block_max(lid, abs(y[lid]));
    largest[lid] = vec2<f32>(x_max, y_max);
}
