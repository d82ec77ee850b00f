// The body of reductions along rows, which are cut into segments of `span` elements. LANES
// invocations share a segment, and a workgroup has ROWS of the `units` segments. Segment s of row r
// has the number s · rows + r. The row is the last axis of `x`. `y` has an element for each
// segment: the result, times `factor` if it is a sum.
let lane = lane_of(local_index);
let unit = group * ROWS + row_of(local_index);
let last = x_ndim - 1u;
let at_x = x_row(unit % rows);
let start = unit / rows * span;
let end = min(start + span, x_shape[last]);
var part = nothing();
for (var first = start + 4u * lane; first < end; first += STEP * TURNS) {
    let v = blocks(at_x, first, x_strides[last], end);
    for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
        let i = first + turn * STEP;
        part = joined(part, block(v[turn], i, min(4u, max(end, i) - i)));
    }
}
part = whole(part, local_index);
if lane == 0u && unit < units {
    keep(y_row(unit), part, factor);
}
