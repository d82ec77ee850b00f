// The body of attention's last kernel: it joins the parts of a row of `y`, of which a workgroup has
// one. `x` has a row for each part: weighted values, largest score, and sum of weights. LANES
// invocations share a column of blocks, and each has HELD parts at a time.
const HELD: u32 = 8u;
var<workgroup> staged: array<vec4<f32>, SIZE>;
var<workgroup> tops: array<f32, LANES>;
var<workgroup> totals: array<f32, LANES>;

let step_x = x_strides[x_ndim - 1u];
let row = min(group, rows - 1u);
let column = local_index % COLUMNS;
let lane = local_index / COLUMNS;

var top = ABSENT;
var total = 0.0;
var sum = vec4<f32>();
if SINKS && lane == 0u {
    top = marked(sinks_get(sinks_row(row), 0u, 1u, 1u).x);
    total = 1.0;
}
for (var first = lane; lane < LANES && first < parts; first += HELD * LANES) {
    var x4: array<vec4<f32>, HELD>;
    var ends: array<vec4<f32>, HELD>;
    for (var n = 0u; n < HELD; n += 1u) { //unroll
        let part = first + n * LANES;
        ends[n] = vec4(ABSENT, 0.0, 0.0, 0.0);
        x4[n] = vec4<f32>();
        if part < parts {
            let at = x_row(row * parts + part);
            ends[n] = x_get(at, 4u * COLUMNS, step_x, 4u);
            x4[n] = x_get(at, 4u * column, step_x, 4u);
        }
    }
    let before = top;
    for (var n = 0u; n < HELD; n += 1u) { //unroll
        top = max(top, ends[n].x);
    }
    let factor = exponential(before, top);
    total *= factor;
    sum *= factor;
    for (var n = 0u; n < HELD; n += 1u) { //unroll
        let p = exponential(ends[n].x, top);
        total += p * ends[n].y;
        sum += p * x4[n];
    }
}
staged[local_index] = sum;
if column == 0u && lane < LANES {
    tops[lane] = top;
    totals[lane] = total;
}
workgroupBarrier();

if group < rows && lane == 0u {
    for (var l = 1u; l < LANES; l += 1u) {
        top = max(top, tops[l]);
    }
    total = 0.0;
    sum = vec4<f32>();
    for (var l = 0u; l < LANES; l += 1u) {
        let p = exponential(tops[l], top);
        total += p * totals[l];
        sum += p * staged[l * COLUMNS + column];
    }
    let y_width = y_shape[y_ndim - 1u];
    let i = 4u * column;
    let y4 = quotient(sum, top, total, row);
    y_put(y_row(row), i, y_strides[y_ndim - 1u], min(4u, y_width - i), y4);
}
