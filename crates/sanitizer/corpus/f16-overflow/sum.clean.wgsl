// Sums halves.
enable f16;
@group(0) @binding(0) var<storage, read> data: array<f16>;
@group(0) @binding(1) var<storage, read_write> sum: array<f32>;

@compute @workgroup_size(1)
fn main() {
    var total = 0.0;
    for (var i = 0u; i < 21u; i++) {
        total += f32(data[i]);
    }
    total += f32(data[21]);
    sum[0] = f32(total);
}
