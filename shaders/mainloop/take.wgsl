// Mainloop: copies elements of a table B [entries, table_rows, k] to a contiguous C [entries, m,
// n]: all of them, or the rows and columns that indices name. Each invocation owns the four
// elements of C from a multiple of 4 of its storage on, and with them whole words.
//
// A pass may bind only bound_rows of the rows of B, from first_row on. It leaves elements from
// other rows unchanged. An index beyond the table gives BEYOND.
// needs: B_K_CONTIGUOUS b_base b_bits b_bits4 c_put column_index linear_id params row_index
// provides: BEYOND FOURS Source THREADS main source

const THREADS: u32 = 64u; //param
// Whether the four lie in one row, and follow each other in B.
const FOURS: bool = false; //param
// The result for an index beyond the table: bits of f32, or an integer.
const BEYOND: u32 = 0x7fc00000u; //param

// Where an element of C comes from: its place in B, unless that is beyond it, or in another pass.
struct Source {
    at: u32,
    beyond: bool,
    here: bool,
}

// Source of the element of C at an index relative to the first.
fn source(relative: u32) -> Source {
    let line = relative / params.n;
    let row = row_index(line % params.m);
    let column = column_index(relative % params.n);
    if row >= params.table_rows || column >= params.k {
        return Source(0u, true, true);
    }
    if row < params.first_row || row - params.first_row >= params.bound_rows {
        return Source();
    }
    let ld = params.b_ld;
    let base = b_base(line / params.m);
    let bound = row - params.first_row;
    return Source(base + select(column * ld + bound, bound * ld + column, B_K_CONTIGUOUS), false,
        true);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let id = linear_id(workgroup) * THREADS + thread;
    if id >= params.shares {
        return;
    }
    let first = (params.c_offset / 4u + id) * 4u;
    let elements = params.entries * params.m * params.n;
    var bits = vec4<u32>(BEYOND);
    var valid = vec4<bool>();
    if FOURS {
        let origin = source(first - params.c_offset);
        if origin.here && !origin.beyond {
            bits = b_bits4(origin.at);
        }
        valid = vec4<bool>(origin.here);
    } else {
        for (var j = 0u; j < 4u; j += 1u) {
            let index = first + j;
            if index < params.c_offset || index - params.c_offset >= elements {
                continue;
            }
            let origin = source(index - params.c_offset);
            if origin.here && !origin.beyond {
                bits[j] = b_bits(origin.at);
            }
            valid[j] = origin.here;
        }
    }
    c_put(first, bits, valid);
}
