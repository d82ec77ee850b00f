// The body of softmax. LANES invocations share a row, a workgroup has ROWS of them; `rows` is how
// many there are. `before` is the number of keys before the first of the `queries`.
const SIZE = LANES * ROWS;
var<workgroup> parts: array<vec2<f32>, SIZE>;

let lane = local_index % LANES;
let row = (workgroup_id.y * num_workgroups.x + workgroup_id.x) * ROWS + local_index / LANES;
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
for (var i = lane; i < seen; i += LANES) {
    var score = scale * x_load(at_x + i * x_strides[last]);
    if MASKED {
        score += mask_load(at_mask + i * mask_strides[last]);
    }
    part = joined(part, single(score));
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

for (var i = lane; i < length; i += LANES) {
    var p = 0.0;
    if whole.y < 0.0 {
        // NaN, of a number that is not constant.
        p = bitcast<f32>(0x7fc00000u | min(row, 1u));
    } else if i < seen {
        var score = scale * x_load(at_x + i * x_strides[last]);
        if MASKED {
            score += mask_load(at_mask + i * mask_strides[last]);
        }
        if !is_masked(score) {
            p = vanishing(score - whole.x) / whole.y;
        }
    }
    y_store(at_y + i * y_strides[last], p);
}
