let i = global_id.y * COLUMNS + global_id.x;
if i < ROWS * COLUMNS {
    out[i] = a[i] + 10.0;
}
