// The body of norms along rows: `lanes` invocations share one of the `rows` rows. Elements are read
// once if they are KEPT, and otherwise by each loop. If SUMMED, the row is that of a sum, which is
// written, too; if NORMED, the residual has a norm before it is added.
let lane = lane_of(local_index, lanes);
let row = group * (SIZE / lanes) + row_of(local_index, lanes);
let reach = 4u * lanes;
let last = y_ndim - 1u;
let steps = vec3(
    x_strides[x_ndim - 1u], residual_strides[residual_ndim - 1u], behind_strides[0],
);
let length = select(0u, y_shape[last], row < rows);
var v: Blocks;

// First the factor of the residual's norm.
var by = 1.0;
if NORMED {
    var part = nothing();
    for (var first = 4u * lane; first < length; first += reach) {
        let d = residual_get(residual_row(row), first, steps.y, min(4u, length - first));
        part += (d.x * d.x + d.y * d.y) + (d.z * d.z + d.w * d.w);
    }
    by = inverseSqrt(whole(part, local_index, lanes) / f32(y_shape[last]) + eps);
}

// Then the mean, if it is asked for.
var mean = 0.0;
if CENTRED {
    var part = nothing();
    for (var first = 4u * lane; first < length; first += reach * TURNS) {
        v = terms(row, first, reach, steps, length, by, offset);
        for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
            part += (v[turn].x + v[turn].y) + (v[turn].z + v[turn].w);
        }
    }
    mean = whole(part, local_index, lanes) / f32(y_shape[last]);
}

// Then the mean square of the distances from the mean.
var part = nothing();
for (var first = 4u * lane; first < length; first += reach * TURNS) {
    if !(KEPT && CENTRED) {
        v = terms(row, first, reach, steps, length, by, offset);
    }
    for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
        let i = first + turn * reach;
        let d = select(vec4<f32>(), v[turn] - mean, vec4(0u, 1u, 2u, 3u) + i < vec4(length));
        part += (d.x * d.x + d.y * d.y) + (d.z * d.z + d.w * d.w);
    }
}
let factor = inverseSqrt(whole(part, local_index, lanes) / f32(y_shape[last]) + eps);

for (var first = 4u * lane; first < length; first += reach * TURNS) {
    if !KEPT {
        v = terms(row, first, reach, steps, length, by, offset);
    }
    for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
        let i = first + turn * reach;
        if i < length {
            let count = min(4u, length - i);
            let own = weight_get(0u, i, weight_strides[0], count) + offset;
            var z = (v[turn] - mean) * factor * own;
            if CENTRED {
                z += bias_get(0u, i, bias_strides[0], count);
            }
            if ADDED {
                z += residual_get(residual_row(row), i, steps.y, count);
            }
            if SUMMED {
                sum_put(sum_row(row), i, sum_strides[last], count, v[turn]);
            }
            y_put(y_row(row), i, y_strides[last], count, z);
        }
    }
}
