if global_id.x == 0u {
    var sum = 0.0;
    for (var i = 0u; i < SIZE; i++) {
        sum += a[i] * b[i];
    }
    out[0] = sum;
}
