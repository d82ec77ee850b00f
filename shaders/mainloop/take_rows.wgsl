// Mainloop: copies rows of a table B [entries, table_rows, n] to a contiguous C [entries, m, n] of
// the same type: all rows, or the rows that an index names. Rows are whole blocks of 16 bytes.
// Sizes, offsets and strides are in blocks. An invocation copies EACH blocks, and its neighbours
// have those beside each.
//
// A pass may bind only bound_rows of the rows of B, from first_row on. It leaves elements from
// other rows unchanged. An index beyond the table gives BEYOND.
// needs: b_base linear_id params row_index
// provides: B_BINDING BEYOND EACH THREADS b_data c_data main

const THREADS: u32 = 64u; //param
const EACH: u32 = 4u; //param
const B_BINDING: u32 = 1u; //param
// A word of what an index beyond the table gives, in the type of both.
const BEYOND: u32 = 0u; //param

@group(0) @binding(B_BINDING) var<storage, read> b_data: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> c_data: array<vec4<u32>>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let first = linear_id(workgroup) * (THREADS * EACH) + thread;
    var blocks: array<vec4<u32>, EACH>;
    var writes: array<bool, EACH>;
    // All loads are under way before the first block is stored.
    for (var i = 0u; i < EACH; i += 1u) { //unroll
        let id = first + i * THREADS;
        let own = min(id, params.shares - 1u);
        let line = own / params.n;
        let row = row_index(line % params.m);
        let bound = row - params.first_row;
        let beyond = row >= params.table_rows;
        let here = bound < params.bound_rows && !beyond;
        blocks[i] = vec4<u32>(BEYOND);
        if here {
            blocks[i] = b_data[b_base(line / params.m) + bound * params.b_ld + own % params.n];
        }
        writes[i] = id < params.shares && (here || beyond);
    }
    for (var i = 0u; i < EACH; i += 1u) { //unroll
        if writes[i] {
            c_data[params.c_offset + first + i * THREADS] = blocks[i];
        }
    }
}
