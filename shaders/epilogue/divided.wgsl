// Sums of operands whose lines were divided by powers of two when they were packed for a matrix
// unit (mainloop/scale.wgsl, mainloop/split.wgsl): of one operand, or of both.
// needs: C_STEP Tile a_power b_power params
// provides: restored

// The sums of a row, from a column on, of the operands as they were before. Both factors of a
// power are about its root, so that f32 has what lies between where it has the result. Powers fill
// whole fours, as columns do that are stored together.
fn restored(tile: Tile, row: u32, col: u32, sums: vec4<f32>) -> vec4<f32> {
    // Elements beyond an edge have no powers, and are not stored.
    if row >= tile.row_end || col >= params.n {
        return sums;
    }
    let of_row = a_power(tile.batch, row, params.m);
    var all = sums;
    for (var i = 0u; i < C_STEP; i += 1u) {
        let both = of_row * b_power(tile.group, col + i, params.n);
        all[i] = all[i] * both.x * both.y;
    }
    return all;
}
