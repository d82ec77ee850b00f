// What mainloops left in scratch [part][batch][M][N] (partial.metal), for a finishing pass.
// needs: INLINE Params UNROLL c_entries
// provides: PARTS_ARGUMENTS all_parts partial_sums
// constants: AHEAD SCRATCH_SLOT

#define PARTS_ARGUMENTS , device const float *partial_sums [[buffer(SCRATCH_SLOT)]]

// The sums of all parts, in their order, for an element of C.
INLINE float all_parts(constant Params &params, device const float *sums, uint batch, uint row,
    uint col) {
    const uint ld = (params.n + 3) / 4 * 4;
    const uint step = c_entries(params) * params.m * ld;
    const uint first = (batch * params.m + row) * ld + col;
    float sum = 0;
    for (uint part = 0; part < params.parts; part += AHEAD) {
        // Read at once: one after the other, each would wait for memory. Beyond the last part it is
        // read again, and left out below.
        float ahead[AHEAD];
        UNROLL
        for (uint i = 0; i < AHEAD; i += 1) {
            ahead[i] = sums[first + min(part + i, params.parts - 1) * step];
        }
        UNROLL
        for (uint i = 0; i < AHEAD; i += 1) {
            sum += part + i < params.parts ? ahead[i] : 0.0f;
        }
    }
    return sum;
}
