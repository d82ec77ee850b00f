//@ bind 0: u32 values 2,5,6,0, 4,1,2,3, 1,9,0,0
//@ bind 1: u32 out 3
// Sums each node's neighbours.
struct Node {
    degree: u32,
    neighbours: array<u32, 3>,
}
@group(0) @binding(0) var<storage, read> nodes: array<Node>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;

@compute @workgroup_size(3)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let node = id.x;
    var sum = 0u;
    for (var k = 0u; k < nodes[node].degree; k++) {
        sum += nodes[node].neighbours[k]; //~ out-of-bounds
    }
    sums[node] = sum;
}
