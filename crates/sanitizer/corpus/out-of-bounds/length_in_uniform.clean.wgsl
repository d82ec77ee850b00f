// Sums as many numbers as the parameters say.
struct Params {
    length: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> data: array<f32>;
@group(0) @binding(2) var<storage, read_write> sum: array<f32>;

@compute @workgroup_size(1)
fn main() {
    var total = 0.0;
    let length = min(params.length, arrayLength(&data));
    for (var i = 0u; i < length; i++) {
        total += data[i];
    }
    sum[0] = total;
}
