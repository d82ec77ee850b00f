// The body of softmax. `lanes` invocations share one of the `rows` rows. `before` counts keys
// before the first of the `tokens`, besides those of `position`. Of the keys up to a token's own,
// the last `window` count. Scores are read once if they are KEPT, and otherwise by each loop. If
// there are SINKS, a row has one more score, which has no place in the output.
let lane = lane_of(local_index, lanes);
let row = group * (SIZE / lanes) + row_of(local_index, lanes);
let reach = 4u * lanes;
let last = y_ndim - 1u;
let at = vec2(x_row(row), mask_row(row));
let step = vec2(x_strides[last], mask_strides[last]);
let length = select(0u, y_shape[last], row < rows);
// Scores from `seen` on do not count, and with a window not those before `begin`.
var seen = length;
var begin = 0u;
if CAUSAL && row < rows {
    let keys = row % tokens + placed(row, before) + 1u;
    seen = min(length, keys);
    begin = keys - min(keys, window);
}
let by = Scores(scale, cap, none, begin, seen);

var sink = vec4<f32>();
var s: Blocks;
var part = vec2(LOWEST, 0.0);
if SINKS && row < rows {
    sink = sinks_get(sinks_row(row), 0u, 1u, 1u);
    part = largest(sink, 1u);
}
for (var first = 4u * lane; first < seen; first += reach * TURNS) {
    s = scores(at, first, reach, step, by);
    for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
        let i = first + turn * reach;
        if i < seen {
            part = joined(part, largest(s[turn], seen - i));
        }
    }
}
let top = whole(part, local_index, lanes);

part = vec2(LOWEST, 0.0);
if SINKS && lane == 0u {
    part.y = exponentials(sink, 1u, top.x).x;
}
for (var first = 4u * lane; first < seen; first += reach * TURNS) {
    if !KEPT {
        s = scores(at, first, reach, step, by);
    }
    for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
        let i = first + turn * reach;
        if i < seen {
            s[turn] = exponentials(s[turn], seen - i, top.x);
            part.y += (s[turn].x + s[turn].y) + (s[turn].z + s[turn].w);
        }
    }
}
// The largest score adds 1, unless no score counts.
let factor = 1.0 / max(whole(part, local_index, lanes).y, 1.0);

for (var first = 4u * lane; first < length; first += reach * TURNS) {
    if !KEPT {
        s = scores(at, first, reach, step, by);
    }
    for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
        let i = first + turn * reach;
        var p = vec4<f32>();
        if top.y > 0.0 {
            // NaN, made of a number that is not constant.
            p = vec4(bitcast<f32>(0x7fc00000u | min(row, 1u)));
        } else if i < seen {
            p = s[turn];
            if !KEPT {
                p = exponentials(p, seen - i, top.x);
            }
            p *= factor;
        }
        if i < length {
            y_put(y_row(row), i, y_strides[last], min(4u, length - i), p);
        }
    }
}
