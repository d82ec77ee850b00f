// The body of norms along rows: LANES invocations share a row, a workgroup has ROWS of them; `rows`
// is how many there are. A row is read once, and KEPT in TURNS blocks of four for each invocation,
// or read again for each loop.
let lane = lane_of(local_index);
let row = group * ROWS + row_of(local_index);
let last = y_ndim - 1u;
let at_x = x_row(row);
let length = select(0u, y_shape[last], row < rows);
let turns = select((length + 4u * LANES - 1u) / (4u * LANES), TURNS, KEPT);
var kept: array<vec4<f32>, TURNS>;

// First the mean, if it is asked for.
var mean = 0.0;
if KEPT || CENTRED {
    var part = nothing();
    for (var turn = 0u; turn < turns; turn++) {
        let i = 4u * (turn * LANES + lane);
        let count = min(4u, max(length, i) - i);
        let v = x_get(at_x, i, x_strides[last], count);
        if KEPT {
            kept[turn] = v;
        }
        part = joined(part, block(v, i, count));
    }
    if CENTRED {
        mean = whole(part, local_index) / f32(y_shape[last]);
    }
}

// Then the mean square of the distances from it.
var part = nothing();
for (var turn = 0u; turn < turns; turn++) {
    let i = 4u * (turn * LANES + lane);
    let count = min(4u, max(length, i) - i);
    var v = kept[turn % TURNS];
    if !KEPT {
        v = x_get(at_x, i, x_strides[last], count);
    }
    let d = select(vec4<f32>(), v - mean, vec4(0u, 1u, 2u, 3u) < vec4(count));
    part = joined(part, block(d * d, i, count));
}
let factor = inverseSqrt(whole(part, local_index) / f32(y_shape[last]) + eps);

for (var turn = 0u; turn < turns; turn++) {
    let i = 4u * (turn * LANES + lane);
    let count = min(4u, max(length, i) - i);
    var v = kept[turn % TURNS];
    if !KEPT {
        v = x_get(at_x, i, x_strides[last], count);
    }
    v = (v - mean) * factor * weight_get(0u, i, weight_strides[0], count);
    if CENTRED {
        v += bias_get(0u, i, bias_strides[0], count);
    }
    y_put(y_row(row), i, y_strides[last], count, v);
}
