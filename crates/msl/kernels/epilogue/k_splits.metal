// Reads the partial sums in scratch [split][batch][M][N] (partial.metal) in a finishing pass.
// needs: INLINE Params UNROLL c_entries
// provides: K_SPLITS_ARGUMENTS partial_sums sum_k_splits
// constants: AHEAD SCRATCH_SLOT

#define K_SPLITS_ARGUMENTS , device const float *partial_sums [[buffer(SCRATCH_SLOT)]]

// The sums of all K splits, in their order, for an element of C.
INLINE float sum_k_splits(constant Params &params, device const float *sums, uint batch, uint row,
    uint col) {
    const uint ld = (params.n + 3) / 4 * 4;
    const uint step = c_entries(params) * params.m * ld;
    const uint first = (batch * params.m + row) * ld + col;
    float sum = 0;
    for (uint split = 0; split < params.scratch_splits; split += AHEAD) {
        // AHEAD sums are read at once: one after the other, each would wait for memory. Beyond the
        // last split, its sum is read again, and left out below.
        float ahead[AHEAD];
        UNROLL
        for (uint i = 0; i < AHEAD; i += 1) {
            ahead[i] = sums[first + min(split + i, params.scratch_splits - 1) * step];
        }
        UNROLL
        for (uint i = 0; i < AHEAD; i += 1) {
            sum += split + i < params.scratch_splits ? ahead[i] : 0.0f;
        }
    }
    return sum;
}
