// Counts the odd numbers of each row.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;
var<private> seen: u32 = 0u;

fn visit(x: u32) {
    if ((x & 1u) == 1u) {
        seen += 1u;
    }
}

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    for (var k = 0u; k < 8u; k++) {
        visit(data[id.x * 8u + k]);
    }
    counts[id.x] = seen;
}
