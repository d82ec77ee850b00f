// The body of softmax. LANES invocations share a row, a workgroup has ROWS of them; `rows` is how
// many there are. `before` is the number of keys before the first of the `queries`. A row is read
// once, and KEPT in TURNS blocks of four for each invocation, or read again for each loop.
let lane = lane_of(local_index);
let row = group * ROWS + row_of(local_index);
let last = y_ndim - 1u;
let at = vec2(x_row(row), mask_row(row));
let step = vec2(x_strides[last], mask_strides[last]);
let length = select(0u, y_shape[last], row < rows);
// Scores that count.
var seen = length;
if CAUSAL {
    seen = min(length, row % queries + before + 1u);
}
let turns = select((length + 4u * LANES - 1u) / (4u * LANES), TURNS, KEPT);
var kept: array<vec4<f32>, TURNS>;

var part = vec2(LOWEST, 0.0);
for (var turn = 0u; turn < turns; turn++) {
    let i = 4u * (turn * LANES + lane);
    let s = scores(at, i, step, min(4u, max(seen, i) - i), scale);
    if KEPT {
        kept[turn] = s;
    }
    part = joined(part, largest(s));
}
let top = whole(part, local_index);

part = vec2(LOWEST, 0.0);
for (var turn = 0u; turn < turns; turn++) {
    let i = 4u * (turn * LANES + lane);
    var s = kept[turn % TURNS];
    if !KEPT {
        s = scores(at, i, step, min(4u, max(seen, i) - i), scale);
    }
    let e = exponentials(s, top.x);
    if KEPT {
        kept[turn] = e;
    }
    part.y += (e.x + e.y) + (e.z + e.w);
}
// Where a score counts, the largest adds 1.
let factor = 1.0 / max(whole(part, local_index).y, 1.0);

for (var turn = 0u; turn < turns; turn++) {
    let i = 4u * (turn * LANES + lane);
    var e = kept[turn % TURNS];
    if !KEPT {
        e = exponentials(scores(at, i, step, min(4u, max(seen, i) - i), scale), top.x);
    }
    var p = factor * e;
    if top.y > 0.0 {
        // NaN, of a number that is not constant.
        p = vec4(bitcast<f32>(0x7fc00000u | min(row, 1u)));
    }
    y_put(y_row(row), i, y_strides[last], min(4u, max(length, i) - i), p);
}
