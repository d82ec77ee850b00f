//@ bind 0: u32 values 70
//@ bind 1: f32 random 64
//@ bind 2: f32 out 1
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
    let length = params.length;
    for (var i = 0u; i < length; i++) {
        total += data[i]; //~ out-of-bounds
    }
    sum[0] = total;
}
