// Mainloop for products with few rows or few columns, which are bound by reading the large operand once: K is spread over the
// invocations of a workgroup, each of which sums 4×4 blocks along its own stripe; the stripes meet in a tree whose order is fixed.

const BM: u32 = 1u; //param
const BN: u32 = 4u; //param
const ROWS: u32 = 1u; //param
const STRIPES: u32 = 256u; //param

// Invocations side by side along N, along M, then along K.
const QUADS_N: u32 = BN / 4u;
const QUADS: u32 = QUADS_N * (BM / ROWS);
const THREADS: u32 = QUADS * STRIPES;

var<workgroup> stripes: array<vec4<f32>, THREADS * ROWS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let tile = schedule(linear_id(workgroup));
    if !tile.live {
        return;
    }
    let row = tile.row + thread % QUADS / QUADS_N * ROWS;
    let col = tile.col + thread % QUADS_N * 4u;
    let stripe = thread / QUADS;
    let a = a_base(tile.batch);
    let b = b_base(tile.group);

    var sums: array<vec4<f32>, ROWS>;
    for (var r = 0u; r < ROWS; r += 1u) { //unroll
        sums[r] = vec4<f32>();
    }
    for (var k = tile.k + stripe * 4u; k < tile.k_end; k += STRIPES * 4u) {
        let rows = a_block(a, row, min(tile.row_end, row + ROWS), k, tile.k_end);
        let columns = b_block(b, col, params.n, k, tile.k_end);
        for (var i = 0u; i < 4u; i += 1u) { //unroll
            for (var r = 0u; r < ROWS; r += 1u) { //unroll
                sums[r] = fma(vec4<f32>(rows[i][r]), columns[i], sums[r]);
            }
        }
    }

    for (var r = 0u; r < ROWS; r += 1u) { //unroll
        stripes[r * THREADS + thread] = sums[r];
    }
    for (var half = STRIPES / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if stripe < half {
            for (var r = 0u; r < ROWS; r += 1u) { //unroll
                let at = r * THREADS + thread;
                stripes[at] += stripes[at + half * QUADS];
            }
        }
    }
    // Only what this invocation wrote itself is read below.
    if stripe == 0u {
        for (var r = 0u; r < ROWS; r += 1u) { //unroll
            store4(tile, row + r, col, stripes[r * THREADS + thread]);
        }
    }
}
