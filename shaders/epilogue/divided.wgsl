// Sums of operands whose lines were divided by powers of two when they were packed for a matrix
// unit (mainloop/scale.wgsl, mainloop/split.wgsl): of one operand, or of both.
// needs: C_STEP Tile a_exponent b_exponent params
// provides: restored times

// Numbers times powers of two between 2^-330 and 2^228, in two halves. Those below 2^-252 leave
// nothing of a sum.
fn times(numbers: vec4<f32>, powers: vec4<i32>) -> vec4<f32> {
    let half = max(powers / 2, vec4<i32>(-126));
    let other = max(powers - half, vec4<i32>(-126));
    return numbers * bitcast<vec4<f32>>((half + 127) << vec4<u32>(23u))
        * bitcast<vec4<f32>>((other + 127) << vec4<u32>(23u));
}

// The sums of a row, from a column on, of the operands as they were before. Exponents fill whole
// fours, as columns do that are stored together.
fn restored(tile: Tile, row: u32, col: u32, sums: vec4<f32>) -> vec4<f32> {
    // Elements beyond an edge have no exponents, and are not stored.
    if row >= tile.row_end || col >= params.n {
        return sums;
    }
    var powers = vec4<i32>(a_exponent(tile.batch, row, params.m));
    for (var i = 0u; i < C_STEP; i += 1u) {
        powers[i] += b_exponent(tile.group, col + i, params.n);
    }
    return times(sums, powers);
}
