let column = global_id.x;
let row = global_id.y;
if row < ROWS && column < COLUMNS {
    let i = row * COLUMNS + column;
    out[i] = a[i] + 10.0;
}
