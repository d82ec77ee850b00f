// Sums every other element.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> sum: array<f32>;

@compute @workgroup_size(1)
fn main() {
    let n = arrayLength(&data);
    var total = 0.0;
    for (var i = 0u; i < n; i += 2u) {
        total += data[min(i, n - 1u)];
    }
    sum[0] = total;
}
