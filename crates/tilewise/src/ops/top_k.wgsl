// The body of top_k: LANES invocations share a row, a workgroup has ROWS of them; `rows` is how
// many there are. In each turn every invocation offers the largest of its elements that was not
// taken; it looks for another one when its own is taken.
const SIZE = LANES * ROWS;
var<workgroup> parts: array<Part, SIZE>;

let lane = local_index % LANES;
let row = (workgroup_id.y * num_workgroups.x + workgroup_id.x) * ROWS + local_index / LANES;
let last = x_ndim - 1u;
var at_x = 0u;
var at_values = 0u;
var at_indices = 0u;
var rest = row;
for (var axis = last; axis > 0u; axis--) {
    let i = rest % x_shape[axis - 1u];
    rest /= x_shape[axis - 1u];
    at_x += i * x_strides[axis - 1u];
    at_values += i * values_strides[axis - 1u];
    at_indices += i * indices_strides[axis - 1u];
}
let length = select(0u, x_shape[last], row < rows);

var own = nothing();
var taken = nothing();
for (var turn = 0u; turn < k; turn++) {
    if turn == 0u || own.y == taken.y {
        own = nothing();
        for (var i = lane; i < length; i += LANES) {
            let other = vec2(ordered(x_load(at_x + i * x_strides[last])), i);
            let after = other.x < taken.x || other.x == taken.x && other.y > taken.y;
            if turn == 0u || after {
                own = joined(own, other);
            }
        }
    }
    parts[local_index] = own;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half /= 2u) {
        if lane < half {
            parts[local_index] = joined(parts[local_index], parts[local_index + half]);
        }
        workgroupBarrier();
    }
    taken = parts[local_index - lane];
    workgroupBarrier();
    if lane == 0u && row < rows {
        let value = x_load(at_x + taken.y * x_strides[last]);
        values_store(at_values + turn * values_strides[last], value);
        indices[at_indices + turn * indices_strides[last]] = taken.y;
    }
}
