let i = global_id.x;
if i < SIZE {
    var sum = 0.0;
    for (var j = 0u; j < CONV && i + j < SIZE; j++) {
        sum += a[i + j] * b[j];
    }
    out[i] = sum;
}
