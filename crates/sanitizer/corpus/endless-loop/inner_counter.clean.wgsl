// Sums of rows in two nested loops.
@group(0) @binding(0) var<storage, read> matrix: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(1)
fn main() {
    for (var row = 0u; row < 8u; row++) {
        var sum = 0.0;
        var column = 0u;
        loop {
            if (column == 8u) {
                break;
            }
            sum += matrix[row * 8u + column];
            column = column + 1u;
        }
        sums[row] = sum;
    }
}
