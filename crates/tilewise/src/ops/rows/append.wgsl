// The body of an append: an invocation has a block of four elements of a row of `x`. `y` has `room`
// rows for each `tokens` rows of `x`. A row beyond the room is not written.
let index = group * SIZE + local_index;
let last = x_ndim - 1u;
let per_row = (x_shape[last] + 3u) / 4u;
if index < blocks {
    let row = index / per_row;
    let to = placed(row, before) + row % tokens - first;
    if to < room {
        let i = index % per_row * 4u;
        let count = min(4u, x_shape[last] - i);
        let v = x_get(x_row(row), i, x_strides[last], count);
        y_put(y_row(row / tokens * room + to), i, y_strides[y_ndim - 1u], count, v);
    }
}
