// The end of a mainloop that leaves the rest to a finishing pass: f32 sums to scratch
// [split][batch][M][N], nothing applied. Rows are whole vectors of four; what lies beyond column N
// is written and never used.
// needs: Tile a_summed c_entries params
// provides: ADD C_STEP partial_sums store

// Whether an earlier pass, over an earlier range of K, has left its sums there.
const ADD: bool = false; //param

@group(0) @binding(9) var<storage, read_write> partial_sums: array<vec4<f32>>;

// Columns that are stored together.
const C_STEP: u32 = 4u;

fn store(tile: Tile, row: u32, col: u32, columns: u32, sums: vec4<f32>) {
    if row >= tile.row_end || col >= params.n {
        return;
    }
    let entry = tile.split * c_entries() + tile.batch;
    let at = (entry * params.m + row) * ((params.n + 3u) / 4u) + col / 4u;
    let own = a_summed(row, sums);
    if ADD {
        partial_sums[at] += own;
    } else {
        partial_sums[at] = own;
    }
}
