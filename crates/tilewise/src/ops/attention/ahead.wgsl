// Loads of attention without matrix units: several blocks are on their way at once.

// DEEP blocks of each of TURNS keys of the row `at`, from this key and this block on, as an
// invocation has them. The last key and the last block are read in place of those behind them.
fn keys_at(
    at: u32, first: u32, last: u32, block: u32, step: vec2<u32>, width: u32
) -> array<vec4<f32>, DEEP * TURNS> {
    var k4: array<vec4<f32>, DEEP * TURNS>;
    for (var n = 0u; n < DEEP; n += 1u) { //unroll
        let i = 4u * min(block + n * SHARE, BLOCKS - 1u);
        for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
            let key = min(first + turn * LINES, last);
            k4[n * TURNS + turn] = k_get(at + key * step.x, i, step.y, min(4u, width - i));
        }
    }
    return k4;
}

// The blocks of a column of HELD values, from the first one on, as an invocation has them. Values
// outside the range are not read.
fn values_at(
    at: u32, first: u32, range: vec2<u32>, column: u32, step: vec2<u32>, count: u32
) -> array<vec4<f32>, HELD> {
    var v4: array<vec4<f32>, HELD>;
    for (var n = 0u; n < HELD; n += 1u) { //unroll
        let key = clamp(first + n * LANES, range.x, range.y - 1u);
        v4[n] = values_get(at + key * step.x, 4u * column, step.y, count);
    }
    return v4;
}
