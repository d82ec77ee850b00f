//@ option: f16-overflow
//@ bind 0: f16 fill 3000 64
//@ bind 1: f32 out 1
// Sums halves.
enable f16;
@group(0) @binding(0) var<storage, read> data: array<f16>;
@group(0) @binding(1) var<storage, read_write> sum: array<f32>;

@compute @workgroup_size(1)
fn main() {
    var total = 0.0h;
    for (var i = 0u; i < 21u; i++) {
        total += data[i];
    }
    total += data[21]; //~ f16-overflow
    sum[0] = f32(total);
}
