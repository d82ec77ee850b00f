if global_id.x == 0u {
    for (var i = 0u; i < SIZE; i++) {
        out[0] += a[i] * b[i];
    }
}
