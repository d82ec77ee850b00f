// The header of norms: the blocks of a row of `x`, as blocks.wgsl has them. If SUMMED, those of
// `residual` are added. `steps` has the distances between elements of both.

fn terms(row: u32, first: u32, reach: u32, steps: vec2<u32>, end: u32) -> Blocks {
    var v = blocks(x_row(row), first, reach, steps.x, end);
    if SUMMED {
        for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
            let i = first + turn * reach;
            if i < end {
                v[turn] += residual_get(residual_row(row), i, steps.y, min(4u, end - i));
            }
        }
    }
    return v;
}
