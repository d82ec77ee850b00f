// The body of norms along rows: LANES invocations share a row, a workgroup has ROWS of them; `rows`
// is how many there are.
const SIZE = LANES * ROWS;
var<workgroup> parts: array<f32, SIZE>;

let lane = local_index % LANES;
let row = group * ROWS + local_index / LANES;
let last = y_ndim - 1u;
var at_x = 0u;
var at_y = 0u;
var rest = row;
for (var axis = last; axis > 0u; axis--) {
    let i = rest % y_shape[axis - 1u];
    rest /= y_shape[axis - 1u];
    at_x += i * x_strides[axis - 1u];
    at_y += i * y_strides[axis - 1u];
}
let length = select(0u, y_shape[last], row < rows);

// First the mean, if it is asked for, then the mean square of the distances from it.
var mean = 0.0;
var square = 0.0;
for (var turn = select(1u, 0u, CENTRED); turn < 2u; turn++) {
    var part = 0.0;
    for (var i = 4u * lane; i < length; i += 4u * LANES) {
        let count = min(4u, length - i);
        let there = vec4(0u, 1u, 2u, 3u) < vec4(count);
        let v = x_get(at_x, i, x_strides[last], count);
        let d = select(vec4<f32>(), v - mean, there);
        let term = select(d, d * d, turn == 1u);
        part += (term.x + term.y) + (term.z + term.w);
    }
    parts[local_index] = part;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half /= 2u) {
        if lane < half {
            parts[local_index] += parts[local_index + half];
        }
        workgroupBarrier();
    }
    let whole = parts[local_index - lane] / f32(y_shape[last]);
    workgroupBarrier();
    mean = select(mean, whole, turn == 0u);
    square = whole;
}

let factor = inverseSqrt(square + eps);
for (var i = 4u * lane; i < length; i += 4u * LANES) {
    let count = min(4u, length - i);
    var v = (x_get(at_x, i, x_strides[last], count) - mean) * factor;
    v *= weight_get(0u, i, weight_strides[0], count);
    if CENTRED {
        v += bias_get(0u, i, bias_strides[0], count);
    }
    y_put(at_y, i, y_strides[last], count, v);
}
