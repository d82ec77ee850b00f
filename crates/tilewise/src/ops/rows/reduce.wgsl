// The body of reductions along rows, which are cut into `units` segments of `span` elements.
// `lanes` invocations share a segment. Segment s of row r
// has the number s · rows + r. The row is the last axis of `x`. `y` has the result of each segment:
// a sum times `factor`, a number, a place, or a part with its place in the segment.
let lane = lane_of(local_index, lanes);
let unit = group * (SIZE / lanes) + row_of(local_index, lanes);
let last = x_ndim - 1u;
let reach = 4u * lanes;
let at_x = x_row(unit % rows);
let start = unit / rows * span;
let end = min(start + span, x_shape[last]);
var part = nothing();
for (var first = start + 4u * lane; first < end; first += reach * TURNS) {
    let v = blocks(at_x, first, reach, x_strides[last], end);
    for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
        let i = first + turn * reach;
        part = joined(part, block(v[turn], i - start, min(4u, max(end, i) - i)));
    }
}
part = whole(part, local_index, lanes);
if lane == 0u && unit < units {
    keep(y_row(unit), part, factor);
}
