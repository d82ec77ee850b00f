// The body of elementwise functions. An invocation has a block of four elements of a row; `a` and
// `b` have the output's shape. INPUTS says how many of the two are read.
let index = group * SIZE + local_index;
let last = y_ndim - 1u;
let per_row = (y_shape[last] + 3u) / 4u;
if index < blocks {
    let row = index / per_row;
    let i = index % per_row * 4u;
    let count = min(4u, y_shape[last] - i);
    var x = V();
    var z = V();
    if INPUTS > 0u {
        x = a_get(a_row(row), i, a_strides[last], count);
    }
    if INPUTS > 1u {
        z = b_get(b_row(row), i, b_strides[last], count);
    }
    y_put(y_row(row), i, y_strides[last], count, apply(x, z, value));
}
