//@ bind 0: f32 values 9,4,2,7
//@ bind 1: f32 out 1
//@ bind 2: u32 out 1
// The largest number and its position.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> largest: array<f32>;
@group(0) @binding(2) var<storage, read_write> position: array<u32>; //~ never-written

@compute @workgroup_size(1)
fn main() {
    var best = data[0];
    for (var i = 1u; i < 4u; i++) {
        if (data[i] > best) {
            best = data[i];
            position[0] = i;
        }
    }
    largest[0] = best;
}
