//@ max-iterations: 1000
//@ bind 0: f32 random 63
//@ bind 1: f32 zero 1
// Sums every other element.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> sum: array<f32>;

@compute @workgroup_size(1)
fn main() {
    let n = arrayLength(&data);
    var total = 0.0;
    for (var i = 0u; i != n; i += 2u) { //~ endless-loop
        total += data[min(i, n - 1u)];
    }
    sum[0] = total;
}
