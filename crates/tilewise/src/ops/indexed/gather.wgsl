// The body of a gather: an invocation has a block of four elements of a row of `y`. An index names
// `inner` rows of `x` along the last axis, and is below `entries` if they are there. If they are
// not, a substitute is written if FILLS, and otherwise nothing.
let index = group * SIZE + local_index;
let last = y_ndim - 1u;
let per_row = (y_shape[last] + 3u) / 4u;
if index < blocks {
    let row = index / per_row;
    let i = index % per_row * 4u;
    let count = min(4u, y_shape[last] - i);
    let entry = indices[row / inner * indices_strides[0]];
    var v = absent(beyond);
    var is_written = FILLS;
    if entry < entries {
        v = x_get(x_row(entry * inner + row % inner), i, x_strides[last], count);
        is_written = true;
    }
    if is_written {
        y_put(y_row(row), i, y_strides[last], count, v);
    }
}
