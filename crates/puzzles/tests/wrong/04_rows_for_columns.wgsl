let column = global_id.x;
let row = global_id.y;
if row < ROWS && column < COLUMNS {
    let i = column * ROWS + row;
    out[i] = a[row * COLUMNS + column] + 10.0;
}
