// The last column of each row of a sparse matrix.
@group(0) @binding(0) var<storage, read> row_starts: array<u32>;
@group(0) @binding(1) var<storage, read> columns: array<u32>;
@group(0) @binding(2) var<storage, read_write> last: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var column = 0xffffffffu;
    for (var k = row_starts[id.x]; k < row_starts[id.x + 1u]; k++) {
        column = columns[k];
    }
    last[id.x] = column;
}
