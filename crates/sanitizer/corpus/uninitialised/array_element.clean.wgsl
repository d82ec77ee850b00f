// Powers of x, summed.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x = data[id.x];
    var powers: array<f32, 4>;
    powers[0] = 1.0;
    powers[1] = x;
    for (var k = 2u; k < 4u; k++) {
        powers[k] = powers[k - 1u] * x;
    }
    var sum = 0.0;
    for (var k = 0u; k < 4u; k++) {
        sum += powers[k];
    }
    sums[id.x] = sum;
}
