// Second pass of a product with K in splits: adds the sums of the splits, and ends as a mainloop
// does. A thread has four elements of a row, 32 bytes or more apart, so that neighbouring threads
// have neighbouring elements.
// needs: END END_ARGUMENTS KERNEL K_SPLITS_ARGUMENTS SCHEDULE_VALUES Tile linear_id params
//        partial_sums schedule sum_k_splits thread_index threadgroup_at
// provides: STEP
// constants: BN

constexpr constant uint STEP = BN / 4;

KERNEL(K_SPLITS_ARGUMENTS END_ARGUMENTS) {
    const Tile tile = schedule(linear_id(threadgroup_at, params), params SCHEDULE_VALUES);
    const uint row = tile.row + thread_index / STEP;
    const auto end = END;
    for (uint col = tile.col + thread_index % STEP; col < tile.col + BN; col += STEP) {
        if (tile.live && row < tile.row_end && col < params.n) {
            end.store(tile, row, col, sum_k_splits(params, partial_sums, tile.batch, row, col));
        }
    }
}
