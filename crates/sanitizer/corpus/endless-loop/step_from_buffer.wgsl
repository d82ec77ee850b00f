//@ max-iterations: 1000
//@ bind 0: u32 values 1,2,0,4
//@ bind 1: f32 random 32
//@ bind 2: f32 zero 4
// Each invocation sums with its own stride.
@group(0) @binding(0) var<storage, read> strides: array<u32>;
@group(0) @binding(1) var<storage, read> data: array<f32>;
@group(0) @binding(2) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let stride = strides[id.x];
    var sum = 0.0;
    for (var i = 0u; i < 32u; i += stride) { //~ endless-loop
        sum += data[i];
    }
    sums[id.x] = sum;
}
