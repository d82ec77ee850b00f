// The body of a scatter's second pass: an invocation has a block of four elements of a row of `x`,
// which the owner of the row in `y` writes.
let index = (workgroup_id.y * num_workgroups.x + workgroup_id.x) * SIZE + local_index;
let last = x_ndim - 1u;
let per_row = (x_shape[last] + 3u) / 4u;
if index < blocks {
    var rest = index / per_row;
    let i = index % per_row * 4u;
    let count = min(4u, x_shape[last] - i);
    var at_x = 0u;
    var at_y = 0u;
    for (var axis = last; axis > 1u; axis--) {
        let i = rest % x_shape[axis - 1u];
        rest /= x_shape[axis - 1u];
        at_x += i * x_strides[axis - 1u];
        at_y += i * y_strides[axis - 1u];
    }
    let row = indices[rest * indices_strides[0]];
    if row < y_shape[0] && owners[row] == rest + 1u {
        at_x += rest * x_strides[0];
        at_y += row * y_strides[0];
        y_put(at_y, i, y_strides[last], count, x_get(at_x, i, x_strides[last], count));
    }
}
