if local_id.x == 0u {
    var sum = 0.0;
    for (var column = 0u; column < COLUMNS; column++) {
        sum += a[workgroup_id.y * COLUMNS + column];
    }
    out[workgroup_id.y] = sum;
}
