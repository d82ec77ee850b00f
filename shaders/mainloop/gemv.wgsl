// Mainloop for products with few rows or few columns. Their time is that of reading the large
// operand once.
//
// A workgroup computes ROWS rows and LANES·COLS columns of C. K is spread over its invocations:
// each sums ROWS×COLS elements along its own stripe, eight steps of K at a time, STRIPES·8 apart.
// Both operands go from memory straight to registers (strip.wgsl). Neighbouring invocations read
// neighbouring memory of B, and the loop has no barrier, so many loads are under way at once.
//
//     K       | 8 | 8 | 8 | ... |      8      | 8 | 8 | ...
//     stripe  | 0 | 1 | 2 | ... | STRIPES - 1 | 0 | 1 | ...
//
// Each step along K belongs to one stripe, so every product is summed once. The stripes' sums meet
// in workgroup memory, in a tree whose order is fixed (stripes.wgsl): C has the same bits in every
// run. Elements beyond K are zeros; sums beyond an edge are not stored.
// needs: A_EIGHTS A_Eight A_K_CONTIGUOUS A_LOADS B_ALONG_K B_Eight B_K_CONTIGUOUS B_LOADS a_base
//        a_strip a_strip_masked a_whole a_widen8 add_stripes b_base b_strip b_strip_masked b_whole
//        b_widen8 linear_id params schedule store
// provides: A_TILE BM BN B_TILE COLS DEPTH INNER LANES QUADS ROUND ROWS STEP STRIPES SUMS THREADS
//        main multiply stripe_at stripe_put stripes

const ROWS: u32 = 1u; //param
// 4 or 8.
const COLS: u32 = 4u; //param
// Invocations along N, and along K.
const LANES: u32 = 1u; //param
const STRIPES: u32 = 64u; //param
// Vectors of sums of an invocation that meet at a time.
const ROUND: u32 = 1u; //param

const BM: u32 = ROWS;
const BN: u32 = COLS * LANES;
const A_TILE: u32 = ROWS;
const B_TILE: u32 = COLS;
const THREADS: u32 = LANES * STRIPES;
// Neighbouring invocations read neighbouring memory of B: eight side by side along K if it is
// stored along K.
const INNER: u32 = 1u + 7u * B_ALONG_K;
// Elements of K in a step of an invocation, and of the workgroup.
const DEPTH: u32 = 8u;
const STEP: u32 = STRIPES * DEPTH;
const QUADS: u32 = COLS / 4u;
const SUMS: u32 = ROWS * QUADS;

var<workgroup> stripes: array<vec4<f32>, THREADS * ROUND>;

fn stripe_at(i: u32) -> vec4<f32> {
    return stripes[i];
}

fn stripe_put(i: u32, sums: vec4<f32>) {
    stripes[i] = sums;
}

fn multiply(sums: ptr<function, array<vec4<f32>, SUMS>>, rows: array<A_Eight, A_LOADS>,
    columns: array<B_Eight, B_LOADS>) {
    var wide: array<mat2x4<f32>, B_LOADS>;
    for (var i = 0u; i < B_LOADS; i += 1u) { //unroll
        wide[i] = b_widen8(columns[i]);
    }
    // The remainders below keep the indices of the branch that is not taken within the arrays.
    for (var k = 0u; k < DEPTH; k += 1u) { //unroll
        var b: array<vec4<f32>, QUADS>;
        for (var q = 0u; q < QUADS; q += 1u) { //unroll
            if B_K_CONTIGUOUS {
                b[q] = vec4<f32>(
                    wide[4u * q % B_LOADS][k / 4u][k % 4u],
                    wide[(4u * q + 1u) % B_LOADS][k / 4u][k % 4u],
                    wide[(4u * q + 2u) % B_LOADS][k / 4u][k % 4u],
                    wide[(4u * q + 3u) % B_LOADS][k / 4u][k % 4u],
                );
            } else {
                b[q] = wide[k % B_LOADS][q];
            }
        }
        for (var r = 0u; r < ROWS; r += 1u) { //unroll
            var a: f32;
            if A_K_CONTIGUOUS {
                a = a_widen8(rows[r % A_LOADS])[k / 4u][k % 4u];
            } else {
                a = a_widen8(rows[(k * A_EIGHTS + r / 8u) % A_LOADS])[r % 8u / 4u][r % 4u];
            }
            for (var q = 0u; q < QUADS; q += 1u) { //unroll
                (*sums)[r * QUADS + q] = fma(vec4<f32>(a), b[q], (*sums)[r * QUADS + q]);
            }
        }
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let tile = schedule(linear_id(workgroup), thread);
    if !tile.live {
        return;
    }
    let lane = thread / INNER % LANES;
    let stripe = thread / (INNER * LANES) * INNER + thread % INNER;
    let col = tile.col + lane * COLS;
    let a = a_base(tile.batch);
    let b = b_base(tile.group);

    var sums: array<vec4<f32>, SUMS>;
    for (var i = 0u; i < SUMS; i += 1u) { //unroll
        sums[i] = vec4<f32>();
    }
    var k = tile.k + stripe * DEPTH;
    // Whole steps, without a branch; then what is left at the edges.
    if a_whole(tile.row, tile.row_end) && b_whole(col, params.n) {
        for (; k + DEPTH <= tile.k_end; k += STEP) {
            multiply(&sums, a_strip(a, tile.row, tile.row_end, k), b_strip(b, col, params.n, k));
        }
    }
    for (; k < tile.k_end; k += STEP) {
        multiply(&sums, a_strip_masked(a, tile.row, tile.row_end, k, tile.k_end),
            b_strip_masked(b, col, params.n, k, tile.k_end));
    }

    for (var first = 0u; first < SUMS / ROUND; first += 1u) { //unroll
        for (var i = 0u; i < ROUND; i += 1u) { //unroll
            stripe_put(i * THREADS + stripe * LANES + lane, sums[first * ROUND + i]);
        }
        add_stripes(thread);
        // Only what this invocation wrote itself is read here.
        for (var i = thread; i < ROUND * LANES; i += THREADS) {
            let quad = first * ROUND + i / LANES;
            let at = i / LANES * THREADS + i % LANES;
            store(tile, tile.row + quad / QUADS, tile.col + i % LANES * COLS + quad % QUADS * 4u,
                4u, stripe_at(at));
        }
        workgroupBarrier();
    }
}
