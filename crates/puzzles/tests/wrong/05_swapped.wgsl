let column = global_id.x;
let row = global_id.y;
if row < ROWS && column < COLUMNS {
    out[row * COLUMNS + column] = b[row] + a[column];
}
