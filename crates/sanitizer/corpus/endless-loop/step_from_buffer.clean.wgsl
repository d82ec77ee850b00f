// Each invocation sums with its own stride.
@group(0) @binding(0) var<storage, read> strides: array<u32>;
@group(0) @binding(1) var<storage, read> data: array<f32>;
@group(0) @binding(2) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let stride = max(strides[id.x], 1u);
    var sum = 0.0;
    for (var i = 0u; i < 32u; i += stride) {
        sum += data[i];
    }
    sums[id.x] = sum;
}
