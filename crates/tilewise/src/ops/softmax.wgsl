// The body of softmax. LANES invocations share a row, a workgroup has ROWS of them; `rows` is how
// many there are. `before` is the number of keys before the first of the `queries`.
const SIZE = LANES * ROWS;
var<workgroup> parts: array<vec2<f32>, SIZE>;

let lane = local_index % LANES;
let row = group * ROWS + local_index / LANES;
let last = y_ndim - 1u;
var at_x = 0u;
var at_mask = 0u;
var at_y = 0u;
var rest = row;
for (var axis = last; axis > 0u; axis--) {
    let i = rest % y_shape[axis - 1u];
    rest /= y_shape[axis - 1u];
    at_x += i * x_strides[axis - 1u];
    at_mask += i * mask_strides[axis - 1u];
    at_y += i * y_strides[axis - 1u];
}
let length = select(0u, y_shape[last], row < rows);
// Scores that count.
var seen = length;
if CAUSAL {
    seen = min(length, row % queries + before + 1u);
}

var part = vec2(LOWEST, 0.0);
for (var i = 4u * lane; i < seen; i += 4u * LANES) {
    let count = min(4u, seen - i);
    var scores = scale * x_get(at_x, i, x_strides[last], count);
    if MASKED {
        scores += mask_get(at_mask, i, mask_strides[last], count);
    }
    part = joined(part, block(scores, count));
}
parts[local_index] = part;
workgroupBarrier();
for (var half = LANES / 2u; half > 0u; half /= 2u) {
    if lane < half {
        parts[local_index] = joined(parts[local_index], parts[local_index + half]);
    }
    workgroupBarrier();
}
let whole = parts[local_index - lane];

for (var i = 4u * lane; i < length; i += 4u * LANES) {
    let count = min(4u, length - i);
    let counted = min(count, max(seen, i) - i);
    var p = vec4<f32>();
    if whole.y < 0.0 {
        // NaN, of a number that is not constant.
        p = vec4(bitcast<f32>(0x7fc00000u | min(row, 1u)));
    } else if counted > 0u {
        var scores = scale * x_get(at_x, i, x_strides[last], counted);
        if MASKED {
            scores += mask_get(at_mask, i, mask_strides[last], counted);
        }
        // Where nothing counts, the sum is 0 and nothing is divided by it.
        let kept = is_finite(scores) & (vec4(0u, 1u, 2u, 3u) < vec4(counted));
        p = select(vec4<f32>(), vanishing(scores - whole.x) / whole.y, kept);
    }
    y_put(at_y, i, y_strides[last], count, p);
}
