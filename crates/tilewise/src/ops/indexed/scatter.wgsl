// The body of a scatter's second pass: an invocation has a block of four elements of a row of `x`.
// It writes them if its row owns the row in `y`. An index names `inner` rows along the last axis.
let index = group * SIZE + local_index;
let last = x_ndim - 1u;
let per_row = (x_shape[last] + 3u) / 4u;
if index < blocks {
    let row = index / per_row;
    let i = index % per_row * 4u;
    let count = min(4u, x_shape[last] - i);
    let to = indices[row / inner * indices_strides[0]];
    if to < y_shape[0] && owners[to] == row / inner + 1u {
        let v = x_get(x_row(row), i, x_strides[last], count);
        y_put(y_row(to * inner + row % inner), i, y_strides[last], count, v);
    }
}
