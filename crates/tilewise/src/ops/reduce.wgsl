// The body of reductions along rows: LANES invocations share a row, a workgroup has ROWS of them;
// `rows` is how many there are. `x` has the row last, `y` has one element for each. Neighbours are
// invocations of one row, or, ACROSS, those of neighbouring rows.
const SIZE = LANES * ROWS;
var<workgroup> parts: array<Part, SIZE>;

let lane = select(local_index % LANES, local_index / ROWS, ACROSS);
let own = select(local_index / LANES, local_index % ROWS, ACROSS);
let row = group * ROWS + own;
let last = x_ndim - 1u;
var at_x = 0u;
var at_y = 0u;
var rest = row;
for (var axis = last; axis > 0u; axis--) {
    let i = rest % x_shape[axis - 1u];
    rest /= x_shape[axis - 1u];
    at_x += i * x_strides[axis - 1u];
    at_y += i * y_strides[axis - 1u];
}
// Beyond the last row some row is read for nothing.
let length = x_shape[last];

var part = nothing();
for (var i = 4u * lane; i < length; i += 4u * LANES) {
    let count = min(4u, length - i);
    part = joined(part, block(x_get(at_x, i, x_strides[last], count), i, count));
}
parts[local_index] = part;
workgroupBarrier();
for (var half = LANES / 2u; half > 0u; half /= 2u) {
    if lane < half {
        let other = local_index + half * select(1u, ROWS, ACROSS);
        parts[local_index] = joined(parts[local_index], parts[other]);
    }
    workgroupBarrier();
}
if lane == 0u && row < rows {
    keep(at_y, parts[local_index]);
}
