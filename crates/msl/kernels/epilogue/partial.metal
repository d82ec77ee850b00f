// The end of a mainloop that leaves the rest to a finishing pass: f32 sums to scratch
// [split][batch][M][N], nothing applied. Rows are whole vectors of four; what lies beyond column N
// is not used.
// needs: INLINE Params Tile c_entries params
// provides: END END_ARGUMENTS End partial_sums
// constants: ADD SCRATCH_SLOT

#define END_ARGUMENTS , device float *partial_sums [[buffer(SCRATCH_SLOT)]]
#define END End{&params, partial_sums}

struct End {
    constant Params *params;
    device float *sums;

    // One sum; those beyond the edge are dropped.
    INLINE void store(thread const Tile &tile, uint row, uint col, float sum) const thread {
        if (row < tile.row_end && col < params->n) {
            const uint entry = tile.split * c_entries(*params) + tile.batch;
            const uint at = (entry * params->m + row) * ((params->n + 3) / 4 * 4) + col;
            // An earlier pass, over an earlier range of K, may have left its sums there.
            sums[at] = ADD ? sums[at] + sum : sum;
        }
    }
};
