//@ max-iterations: 1000
//@ bind 0: u32 values 0,0,1,4,3,2
//@ bind 1: u32 zero 6
// Follows parents up to the root, as union-find does.
@group(0) @binding(0) var<storage, read> parents: array<u32>;
@group(0) @binding(1) var<storage, read_write> roots: array<u32>;

@compute @workgroup_size(6)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var node = id.x;
    while (parents[node] != node) { //~ endless-loop
        node = parents[node];
    }
    roots[id.x] = node;
}
