// Sums of operands whose lines were divided by powers of two when they were packed for a matrix
// unit (mainloop/scale.wgsl, mainloop/split.wgsl): of one operand, or of both.
// needs: C_STEP MATRICES_M MATRICES_N PARTS SIZE SUBGROUPS_M TOGETHER Tile a_power b_power4 params
// provides: Scales restored scales_of

// The powers of an invocation's elements, by their matrices. Each is a word with two factors, its
// halves.
struct Scales {
    rows: array<u32, MATRICES_M * PARTS>,
    columns: array<vec4<u32>, MATRICES_N>,
}

// The powers for an invocation whose first element has this row and column. Beyond an edge, where
// nothing is stored, the powers at the edge are read.
fn scales_of(tile: Tile, row: u32, col: u32) -> Scales {
    var scales: Scales;
    for (var i = 0u; i < MATRICES_M; i += 1u) { //unroll
        for (var part = 0u; part < PARTS; part += 1u) { //unroll
            let x = row + i * SUBGROUPS_M * SIZE + part * (TOGETHER / SIZE);
            scales.rows[i * PARTS + part] =
                a_power(tile.batch, min(x, tile.row_end - 1u), params.m);
        }
    }
    for (var j = 0u; j < MATRICES_N; j += 1u) { //unroll
        let x = min(col + j * SIZE, params.n - 1u);
        let columns = b_power4(tile.group, x, params.n);
        scales.columns[j] = select(columns, vec4<u32>(columns[x % 4u]), C_STEP == 1u);
    }
    return scales;
}

// The sums of a part of matrix (i, j), as the operands gave them before they were divided. Both
// factors of a power are about its root: if f32 has the result, it has what lies between.
fn restored(scales: Scales, i: u32, j: u32, part: u32, sums: vec4<f32>) -> vec4<f32> {
    let row = scales.rows[i * PARTS + part];
    let columns = scales.columns[j];
    let low = bitcast<f32>(row << 16u) * bitcast<vec4<f32>>(columns << vec4<u32>(16u));
    let high =
        bitcast<f32>(row & 0xffff0000u) * bitcast<vec4<f32>>(columns & vec4<u32>(0xffff0000u));
    return sums * low * high;
}
