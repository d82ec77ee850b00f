// Second pass of a product with K in splits: adds the sums of the splits, and ends as a mainloop
// does, with four neighbouring columns of a row.
// needs: linear_id params schedule store sum_k_splits
// provides: BM BN QUADS_N THREADS main

const BM: u32 = 8u; //param
const BN: u32 = 32u; //param

const QUADS_N: u32 = BN / 4u;
const THREADS: u32 = BM * QUADS_N;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let tile = schedule(linear_id(workgroup), thread);
    let row = tile.row + thread / QUADS_N;
    let col = tile.col + thread % QUADS_N * 4u;
    if !tile.live || row >= tile.row_end || col >= params.n {
        return;
    }
    store(tile, row, col, 4u, sum_k_splits(tile.batch, row, col));
}
