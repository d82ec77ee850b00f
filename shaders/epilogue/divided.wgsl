// Sums of operands whose lines were divided by powers of two when they were packed for a matrix
// unit (mainloop/scale.wgsl, mainloop/split.wgsl): of one operand, or of both.
// needs: BM BN C_STEP THREADS Tile a_exponent b_exponent params
// provides: column_powers keep_powers restored row_powers times

var<workgroup> row_powers: array<i32, BM>;
var<workgroup> column_powers: array<i32, BN>;

// Numbers times powers of two between 2^-330 and 2^228, in two halves. Those below 2^-252 leave
// nothing of a sum.
fn times(numbers: vec4<f32>, powers: vec4<i32>) -> vec4<f32> {
    let half = max(powers / 2, vec4<i32>(-126));
    let other = max(powers - half, vec4<i32>(-126));
    return numbers * bitcast<vec4<f32>>((half + 127) << vec4<u32>(23u))
        * bitcast<vec4<f32>>((other + 127) << vec4<u32>(23u));
}

// Reads the powers of a tile's rows and columns, those of the last ones beyond the edges as well,
// long before the end: there, invocations would wait for them at every step.
fn keep_powers(thread: u32, tile: Tile) {
    for (var i = thread; i < BM; i += THREADS) {
        let row = min(tile.row + i, max(tile.row_end, 1u) - 1u);
        row_powers[i] = a_exponent(tile.batch, row, params.m);
    }
    for (var i = thread; i < BN; i += THREADS) {
        let col = min(tile.col + i, params.n - 1u);
        column_powers[i] = b_exponent(tile.group, col, params.n);
    }
}

// The sums of a row, from a column on, of the operands as they were before.
fn restored(tile: Tile, row: u32, col: u32, sums: vec4<f32>) -> vec4<f32> {
    var powers = vec4<i32>(row_powers[row - tile.row]);
    for (var i = 0u; i < C_STEP; i += 1u) {
        powers[i] += column_powers[col - tile.col + i];
    }
    return times(sums, powers);
}
