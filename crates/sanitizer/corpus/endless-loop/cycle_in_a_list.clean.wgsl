// Follows parents up to the root, as union-find does.
@group(0) @binding(0) var<storage, read> parents: array<u32>;
@group(0) @binding(1) var<storage, read_write> roots: array<u32>;

@compute @workgroup_size(6)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var node = id.x;
    var steps = 0u;
    while (parents[node] != node && steps < 6u) {
        node = parents[node];
        steps++;
    }
    roots[id.x] = node;
}
