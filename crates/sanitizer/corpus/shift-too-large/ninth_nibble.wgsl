//@ bind 0: u32 random 4
//@ bind 1: u32 out 4
// Sums the nibbles of each word.
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var sum = 0u;
    for (var k = 0u; k <= 8u; k++) {
        sum += (words[id.x] >> (4u * k)) & 15u; //~ shift-too-large
    }
    sums[id.x] = sum;
}
