// The body of attention's last kernel: it joins the parts of a row of `y`, of which a workgroup has
// one. `x` has a row for each part: weighted values, largest score, and sum of weights.
var<workgroup> tops: array<f32, SIZE>;
var<workgroup> totals: array<f32, SIZE>;

let width = x_shape[x_ndim - 1u];
let step_x = x_strides[x_ndim - 1u];
let row = min(group, rows - 1u);
let own = row * parts + min(local_index, parts - 1u);
let last = x_get(x_row(own), width - 4u, step_x, 4u);
tops[local_index] = last.x;
totals[local_index] = last.y;
workgroupBarrier();

var top = ABSENT;
var total = 0.0;
if SINKS {
    top = marked(sinks_get(sinks_row(row), 0u, 1u, 1u).x);
    total = 1.0;
}
let sink = top;
for (var part = 0u; part < parts; part += 1u) {
    top = max(top, tops[part]);
}
total *= exponential(sink, top);
for (var part = 0u; part < parts; part += 1u) {
    total += exponential(tops[part], top) * totals[part];
}
let y_width = y_shape[y_ndim - 1u];
let i = 4u * local_index;
if group < rows && i < y_width {
    var sum = vec4<f32>();
    for (var part = 0u; part < parts; part += 1u) {
        let x4 = x_get(x_row(row * parts + part), i, step_x, 4u);
        sum += exponential(tops[part], top) * x4;
    }
    let y4 = quotient(sum, top, total, row);
    y_put(y_row(row), i, y_strides[y_ndim - 1u], min(4u, y_width - i), y4);
}
