// The header of norms: the blocks of a row of `x`, as blocks.wgsl has them. If SUMMED, those of
// `residual` are added; if NORMED, times `by` and the weights `behind` with their `offset`. `steps`
// has the distances between elements of `x`, `residual` and `behind`.

fn terms(
    row: u32, first: u32, reach: u32, steps: vec3<u32>, end: u32, by: f32, offset: f32,
) -> Blocks {
    var v = blocks(x_row(row), first, reach, steps.x, end);
    if SUMMED {
        for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
            let i = first + turn * reach;
            if i < end {
                let count = min(4u, end - i);
                var added = residual_get(residual_row(row), i, steps.y, count);
                if NORMED {
                    added *= by * (behind_get(0u, i, steps.z, count) + offset);
                }
                v[turn] += added;
            }
        }
    }
    return v;
}
