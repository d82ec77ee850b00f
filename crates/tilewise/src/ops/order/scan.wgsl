// The body of scans: LANES invocations share a segment of a row, and a workgroup has ROWS of the
// `rows` segments. An invocation has four elements at a time. If a row has several segments, each
// is a whole number of chunks, and the sums of its segments lie side by side.
var<workgroup> parts: array<T, SIZE>;

let lane = local_index % LANES;
let unit = group * ROWS + local_index / LANES;
let last = x_ndim - 1u;
let at_x = x_row(unit / segments);
let at_y = y_row(unit / segments);
let segment = unit % segments;
let start = segment * span;
let end = select(0u, x_shape[last], unit < rows);

var sum = T();
if unit < rows {
    sum = before(unit);
}
for (var chunk = 0u; chunk < span; chunk += 4u * LANES) {
    let first = start + chunk + 4u * lane;
    var own = T();
    var inner = array<T, 4>();
    for (var k = 0u; k < 4u; k++) {
        inner[k] = own;
        if first + k < end {
            own += x[at_x + (first + k) * x_strides[last]];
        }
    }
    parts[local_index] = own;
    workgroupBarrier();
    for (var reach = 1u; reach < LANES; reach *= 2u) {
        var other = T();
        if lane >= reach {
            other = parts[local_index - reach];
        }
        workgroupBarrier();
        parts[local_index] += other;
        workgroupBarrier();
    }
    if !SUMS {
        var outer = sum;
        if lane > 0u {
            outer += parts[local_index - 1u];
        }
        for (var k = 0u; k < 4u; k++) {
            if first + k < end {
                y[at_y + (first + k) * y_strides[last]] = outer + inner[k];
            }
        }
    }
    sum += parts[local_index - lane + LANES - 1u];
    workgroupBarrier();
}
if lane == 0u && unit < rows {
    if SUMS {
        y[at_y + segment] = sum;
    } else if TOTAL && segment + 1u == segments {
        y[at_y + x_shape[last] * y_strides[last]] = sum;
    }
}
