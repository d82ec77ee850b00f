// The body of arg-max's last step: LANES invocations share a row, and a workgroup has ROWS of the
// `rows` rows. `x` has parts of each row, whose places count from segments of `span` elements.
let lane = lane_of(local_index, LANES);
let row = group * ROWS + row_of(local_index, LANES);
let segments = select(0u, x_shape[x_ndim - 2u], row < rows);
var own = nothing();
for (var i = lane; i < segments; i += LANES) {
    let at = x_row(row * segments + i);
    own = joined(own, vec2(x[at], i * span + x[at + 1u]));
}
own = whole(own, local_index, LANES);
if lane == 0u && row < rows {
    y[y_row(row)] = own.y;
}
