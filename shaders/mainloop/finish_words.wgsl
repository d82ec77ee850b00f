// Second pass of a product whose output, two elements to a word, cannot be stored by tiles, as rows
// share words: each invocation owns one word of C, finds the elements in it, adds the sums of
// the K splits for them, and applies the epilogue.
// needs: C_PER c_entries c_store_word epilogue linear_id owner params sum_k_splits
// provides: BM BN Element THREADS element main

const THREADS: u32 = 64u; //param
// A schedule wants to know the size of tiles, though only its `owner` is called here.
const BM: u32 = 1u;
const BN: u32 = 1u;

struct Element {
    batch: u32,
    row: u32,
    col: u32,
}

// The element of C at an index relative to the first, by the first of its columns of the product.
// Row ends up at or beyond params.m, or column at or beyond params.n, in a gap. A stride of 0 says
// that there is one entry, or one row. Batch entries may lie between rows (c_batch < c_ld).
fn element(relative: u32) -> Element {
    var rest = relative;
    var at = Element();
    let rows_outside = params.c_batch != 0u && params.c_batch < params.c_ld;
    if rows_outside {
        at.row = rest / params.c_ld;
        rest = rest % params.c_ld;
    }
    if params.c_batch != 0u {
        at.batch = rest / params.c_batch;
        rest = rest % params.c_batch;
    }
    if !rows_outside && params.c_ld != 0u {
        at.row = rest / params.c_ld;
        rest = rest % params.c_ld;
    }
    at.col = min(rest, params.n / C_PER) * C_PER;
    return at;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let id = linear_id(workgroup) * THREADS + thread;
    if id >= params.shares {
        return;
    }
    let word = params.c_offset / 2u + id;
    var y = vec2<f32>();
    var valid = vec2<bool>();
    for (var half = 0u; half < 2u; half += 1u) {
        let index = word * 2u + half;
        if index < params.c_offset {
            continue;
        }
        let at = element(index - params.c_offset);
        if at.batch >= c_entries() || at.row >= params.m || at.col >= params.n {
            continue;
        }
        let owner = owner(at.batch, at.row);
        if !owner.live {
            continue;
        }
        let sums = sum_k_splits(at.batch, at.row, at.col);
        let own = vec4<f32>(sums[at.col % 4u], sums[(at.col + 1u) % 4u], 0.0, 0.0);
        y[half] = epilogue(at.batch, owner.group, at.row, at.col, C_PER, own).x;
        valid[half] = true;
    }
    c_store_word(word, y, valid);
}
