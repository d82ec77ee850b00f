// The body of elementwise functions. An invocation has a block of four elements of a row; the
// shapes are those of the output. `a` and `b` are read as far as INPUTS says.
let index = group * SIZE + local_index;
let last = y_ndim - 1u;
let per_row = (y_shape[last] + 3u) / 4u;
if index < blocks {
    var rest = index / per_row;
    let i = index % per_row * 4u;
    let count = min(4u, y_shape[last] - i);
    var at_a = 0u;
    var at_b = 0u;
    var at_y = 0u;
    for (var axis = last; axis > 0u; axis--) {
        let i = rest % y_shape[axis - 1u];
        rest /= y_shape[axis - 1u];
        at_a += i * a_strides[axis - 1u];
        at_b += i * b_strides[axis - 1u];
        at_y += i * y_strides[axis - 1u];
    }
    var x = V();
    var z = V();
    if INPUTS > 0u {
        x = a_get(at_a, i, a_strides[last], count);
    }
    if INPUTS > 1u {
        z = b_get(at_b, i, b_strides[last], count);
    }
    y_put(at_y, i, y_strides[last], count, apply(x, z, value));
}
