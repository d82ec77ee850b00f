// Mainloop: each invocation sums four neighbouring elements of one row of C, straight from the
// operands. Slow, and the floor against which the others are held: nothing is shared, so nothing
// can race.
// needs: a_at a_base b_at b_base linear_id params schedule store
// provides: BM BN THREADS main

const BM: u32 = 8u; //param
const BN: u32 = 32u; //param

const THREADS: u32 = 64u;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let tile = schedule(linear_id(workgroup), thread);
    if !tile.live {
        return;
    }
    let row = tile.row + thread / (BN / 4u);
    let col = tile.col + thread % (BN / 4u) * 4u;
    if row >= tile.row_end || col >= params.n {
        return;
    }
    let a = a_base(tile.batch);
    let b = b_base(tile.group);
    var sum = vec4<f32>();
    for (var k = tile.k; k < tile.k_end; k += 1u) {
        // Beyond the last column the last one is read again; its sum is not stored.
        let last = params.n - 1u;
        let columns = vec4<f32>(
            b_at(b, col, k),
            b_at(b, min(col + 1u, last), k),
            b_at(b, min(col + 2u, last), k),
            b_at(b, min(col + 3u, last), k),
        );
        sum = fma(vec4<f32>(a_at(a, row, k)), columns, sum);
    }
    store(tile, row, col, 4u, sum);
}
