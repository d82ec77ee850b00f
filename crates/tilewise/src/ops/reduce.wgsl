// The body of reductions along rows: LANES invocations share a row, a workgroup has ROWS of them;
// `rows` is how many there are. `x` has the row last, `y` one element for each.
let lane = lane_of(local_index);
let row = group * ROWS + row_of(local_index);
let last = x_ndim - 1u;
let at_x = x_row(row);
let length = select(0u, x_shape[last], row < rows);
var part = nothing();
for (var i = 4u * lane; i < length; i += 4u * LANES) {
    let count = min(4u, length - i);
    part = joined(part, block(x_get(at_x, i, x_strides[last], count), i, count));
}
part = whole(part, local_index);
if lane == 0u && row < rows {
    keep(y_row(row), part);
}
