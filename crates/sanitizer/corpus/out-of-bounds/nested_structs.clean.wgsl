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
    for (var k = 0u; k < min(nodes[node].degree, 3u); k++) {
        sum += nodes[node].neighbours[k];
    }
    sums[node] = sum;
}
