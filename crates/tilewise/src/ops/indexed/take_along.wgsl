// The body of take_along: an invocation has a block of four elements of a row of `y`. Each is the
// element of the same row of `x` that its index names, if the index is below `columns`.
let index = group * SIZE + local_index;
let per_row = (y_shape[1] + 3u) / 4u;
if index < blocks {
    let row = index / per_row;
    let i = index % per_row * 4u;
    let count = min(4u, y_shape[1] - i);
    var v = V();
    for (var j = 0u; j < 4u; j++) {
        if j < count {
            let at = indices[row * indices_strides[0] + (i + j) * indices_strides[1]];
            v[j] = bitcast<f32>(beyond);
            if at < columns {
                v[j] = x_load(row * x_strides[0] + at * x_strides[1]);
            }
        }
    }
    y_put(row * y_strides[0], i, y_strides[1], count, v);
}
