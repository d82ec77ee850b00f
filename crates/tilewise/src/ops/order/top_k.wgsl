// The body of top_k: LANES invocations share a row, and a workgroup has ROWS of the `rows` rows. In
// each turn every invocation offers the largest of its elements that was not taken. It looks for
// another one when its own is taken.
let lane = lane_of(local_index, LANES);
let row = group * ROWS + row_of(local_index, LANES);
let last = x_ndim - 1u;
let at_x = x_row(row);
let length = select(0u, x_shape[last], row < rows);

var own = nothing();
var taken = nothing();
for (var turn = 0u; turn < k; turn++) {
    if own.y == taken.y {
        own = nothing();
        for (var i = lane; i < length; i += LANES) {
            let other = vec2(ordered(x_load(at_x + i * x_strides[last])), i);
            let after = other.x < taken.x || (other.x == taken.x && other.y > taken.y);
            if turn == 0u || after {
                own = joined(own, other);
            }
        }
    }
    taken = whole(own, local_index, LANES);
    if lane == 0u && row < rows {
        let value = x_load(at_x + taken.y * x_strides[last]);
        values_store(values_row(row) + turn * values_strides[last], value);
        indices[indices_row(row) + turn * indices_strides[last]] = taken.y;
    }
}
