// The body of norms along rows: LANES invocations share a row, and a workgroup has ROWS of the
// `rows` rows. Elements are read once if they are KEPT, and otherwise by each loop.
let lane = lane_of(local_index);
let row = group * ROWS + row_of(local_index);
let last = y_ndim - 1u;
let at_x = x_row(row);
let length = select(0u, y_shape[last], row < rows);
var v: Blocks;

// First the mean, if it is asked for.
var mean = 0.0;
if CENTRED {
    var part = nothing();
    for (var first = 4u * lane; first < length; first += STEP * TURNS) {
        v = blocks(at_x, first, x_strides[last], length);
        for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
            part += (v[turn].x + v[turn].y) + (v[turn].z + v[turn].w);
        }
    }
    mean = whole(part, local_index) / f32(y_shape[last]);
}

// Then the mean square of the distances from the mean.
var part = nothing();
for (var first = 4u * lane; first < length; first += STEP * TURNS) {
    if !(KEPT && CENTRED) {
        v = blocks(at_x, first, x_strides[last], length);
    }
    for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
        let i = first + turn * STEP;
        let d = select(vec4<f32>(), v[turn] - mean, vec4(0u, 1u, 2u, 3u) + i < vec4(length));
        part += (d.x * d.x + d.y * d.y) + (d.z * d.z + d.w * d.w);
    }
}
let factor = inverseSqrt(whole(part, local_index) / f32(y_shape[last]) + eps);

for (var first = 4u * lane; first < length; first += STEP * TURNS) {
    if !KEPT {
        v = blocks(at_x, first, x_strides[last], length);
    }
    for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
        let i = first + turn * STEP;
        if i < length {
            let count = min(4u, length - i);
            var z = (v[turn] - mean) * factor * weight_get(0u, i, weight_strides[0], count);
            if CENTRED {
                z += bias_get(0u, i, bias_strides[0], count);
            }
            y_put(y_row(row), i, y_strides[last], count, z);
        }
    }
}
