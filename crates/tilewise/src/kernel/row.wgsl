// The first element of row i, in elements from the view's first. Rows lie along the last axis, and
// i counts them in row-major order. The third block stands for each axis between the first and the
// last, the fourth for the first.

fn NAME_row(tilewise_i: u32) -> u32 {
    var tilewise_at = 0u;
    var tilewise_rest = tilewise_i;

    tilewise_at += tilewise_rest % tilewise_call.NAME_shape_AXIS * tilewise_call.NAME_strides_AXIS;
    tilewise_rest /= tilewise_call.NAME_shape_AXIS;

    tilewise_at += tilewise_rest * tilewise_call.NAME_strides_0;

    return tilewise_at;
}
