// Mainloop: copies rows of a table B [entries, table_rows, n] to a contiguous C [entries, m, n] of
// the same type: all rows, or the rows that an index names. Rows are whole blocks of 16 bytes.
// Sizes, offsets and strides are in blocks. An invocation copies one block.
//
// A pass may have the rows of B from first_row on, bound_rows of them, and leaves the elements of
// others unchanged. An index beyond the table gives BEYOND.
// needs: b_base linear_id params row_index
// provides: B_BINDING BEYOND THREADS b_data c_data main

const THREADS: u32 = 64u; //param
const B_BINDING: u32 = 1u; //param
// A word of what an index beyond the table gives, in the type of both.
const BEYOND: u32 = 0u; //param

@group(0) @binding(B_BINDING) var<storage, read> b_data: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> c_data: array<vec4<u32>>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let id = linear_id(workgroup) * THREADS + thread;
    if id >= params.shares {
        return;
    }
    let line = id / params.n;
    let row = row_index(line % params.m);
    var block = vec4<u32>(BEYOND);
    if row < params.table_rows {
        if row < params.first_row || row - params.first_row >= params.bound_rows {
            return;
        }
        let bound = row - params.first_row;
        block = b_data[b_base(line / params.m) + bound * params.b_ld + id % params.n];
    }
    c_data[params.c_offset + id] = block;
}
