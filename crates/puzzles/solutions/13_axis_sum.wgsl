var<workgroup> tile: array<f32, GROUP>;

let column = local_id.x;
let row = workgroup_id.y;
var number = 0.0;
if column < COLUMNS {
    number = a[row * COLUMNS + column];
}
tile[column] = number;
workgroupBarrier();

for (var half = GROUP / 2u; half > 0u; half /= 2u) {
    if column < half {
        tile[column] += tile[column + half];
    }
    workgroupBarrier();
}
if column == 0u {
    out[row] = tile[0];
}
