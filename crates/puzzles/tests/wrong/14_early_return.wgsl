var<workgroup> a_tile: array<array<f32, GROUP>, GROUP>;
var<workgroup> b_tile: array<array<f32, GROUP>, GROUP>;

let column = global_id.x;
let row = global_id.y;
let x = local_id.x;
let y = local_id.y;

if row >= M || column >= N {
    return;
}
var sum = 0.0;
for (var start = 0u; start < K; start += GROUP) {
    // Beyond the edges of the matrices the tiles hold 0, which adds nothing.
    var left = 0.0;
    if row < M && start + x < K {
        left = a[row * K + start + x];
    }
    var right = 0.0;
    if start + y < K && column < N {
        right = b[(start + y) * N + column];
    }
    a_tile[y][x] = left;
    b_tile[y][x] = right;
    workgroupBarrier();
    for (var k = 0u; k < GROUP; k++) {
        sum += a_tile[y][k] * b_tile[k][x];
    }
    // Nobody may fill the next tiles while others still read these.
    workgroupBarrier();
}
if row < M && column < N {
    out[row * N + column] = sum;
}
