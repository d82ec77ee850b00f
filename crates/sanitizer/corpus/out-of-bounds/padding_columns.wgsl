//@ bind 0: f32 random 32
//@ rows 0: 4 x 5 stride 8
//@ bind 1: f32 out 4
// Sums of the rows of a 4 by 5 matrix whose rows lie 8 apart.
const COLUMNS: u32 = 5u;
const LD: u32 = 8u;
@group(0) @binding(0) var<storage, read> matrix: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var sum = 0.0;
    for (var k = 0u; k < LD; k++) {
        sum += matrix[id.x * LD + k]; //~ out-of-bounds
    }
    sums[id.x] = sum;
}
