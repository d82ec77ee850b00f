let column = global_id.x;
let row = global_id.y;
if row < M && column < N {
    var sum = 0.0;
    for (var k = 0u; k < K; k++) {
        sum += a[row * K + k] * b[k * N + column];
    }
    out[row * N + column] = sum;
}
