// What mainloops left in scratch [part][batch][M][N] (partial.wgsl), for a finishing pass.
// needs: c_entries params partial_sums
// provides: AHEAD all_parts

// Parts that are read at once: one after the other, each would wait for memory.
const AHEAD: u32 = 4u; //param

// The sums of all parts, in their order, for the four columns of a row from a multiple of 4 on.
fn all_parts(batch: u32, row: u32, col: u32) -> vec4<f32> {
    let quads = (params.n + 3u) / 4u;
    let first = (batch * params.m + row) * quads + col / 4u;
    let step = c_entries() * params.m * quads;
    var sum = vec4<f32>();
    for (var part = 0u; part < params.parts; part += AHEAD) {
        var sums: array<vec4<f32>, AHEAD>;
        // Beyond the last part it is read again, and left out below: a branch would make the loads
        // wait for one another.
        for (var i = 0u; i < AHEAD; i += 1u) { //unroll
            sums[i] = partial_sums[first + min(part + i, params.parts - 1u) * step];
        }
        for (var i = 0u; i < AHEAD; i += 1u) { //unroll
            sum += select(vec4<f32>(), sums[i], part + i < params.parts);
        }
    }
    return sum;
}
