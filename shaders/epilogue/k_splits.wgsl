// Reads the partial sums in scratch [split][batch][M][N] (partial.wgsl) in a finishing pass.
// needs: c_entries params partial_sums
// provides: AHEAD sum_k_splits

// Splits that are read at once: one after the other, each would wait for memory.
const AHEAD: u32 = 4u; //param

// The sums of all K splits, in their order, for the four columns of a row from a multiple of 4 on.
fn sum_k_splits(batch: u32, row: u32, col: u32) -> vec4<f32> {
    let quads = (params.n + 3u) / 4u;
    let first = (batch * params.m + row) * quads + col / 4u;
    let step = c_entries() * params.m * quads;
    var sum = vec4<f32>();
    for (var split = 0u; split < params.scratch_splits; split += AHEAD) {
        var sums: array<vec4<f32>, AHEAD>;
        // Beyond the last split, its sum is read again, and left out below: a branch would make the
        // loads wait for one another.
        for (var i = 0u; i < AHEAD; i += 1u) { //unroll
            sums[i] = partial_sums[first + min(split + i, params.scratch_splits - 1u) * step];
        }
        for (var i = 0u; i < AHEAD; i += 1u) { //unroll
            sum += select(vec4<f32>(), sums[i], split + i < params.scratch_splits);
        }
    }
    return sum;
}
