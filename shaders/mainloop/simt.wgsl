// Mainloop: a BM×BN tile of C per workgroup and TM×TN of it per invocation, in registers. Slices of
// A and B, BK deep, pass through workgroup memory; the next slice is fetched into registers while
// the current one is multiplied.
// needs: A_BLOCKS A_QUADS B_QUADS a_base a_decode a_fetch a_first a_has a_lines a_put a_raw4
//        a_slice a_swizzled b_base b_decode b_fetch b_first b_has b_lines b_put b_raw4 b_slice
//        b_swizzled linear_id params schedule store
// provides: A_TILE BK BM BN B_TILE PATCHES_N PATCH_M PATCH_N THREADS THREADS_M THREADS_N TM TN TN4
//        main

const BM: u32 = 64u; //param
const BN: u32 = 64u; //param
const BK: u32 = 16u; //param
const TM: u32 = 4u; //param
const TN: u32 = 4u; //param
// Invocations that lie side by side along N in a patch of 32: fewer distinct reads of workgroup
// memory than a row of 32 would make.
const PATCH_N: u32 = 8u; //param

const A_TILE: u32 = BM;
const B_TILE: u32 = BN;
const THREADS_N: u32 = BN / TN;
const THREADS_M: u32 = BM / TM;
const THREADS: u32 = THREADS_M * THREADS_N;
const PATCH_M: u32 = 32u / PATCH_N;
const PATCHES_N: u32 = THREADS_N / PATCH_N;
const TN4: u32 = TN / 4u;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let tile = schedule(linear_id(workgroup), thread);
    if !tile.live {
        return;
    }
    let a = a_base(tile.batch);
    let b = b_base(tile.group);
    // If an operand has fewer blocks than there are invocations, those that fetch none of A begin
    // with B.
    let b_thread = (thread + THREADS - A_BLOCKS % THREADS) % THREADS;

    // The first quad of rows (and of columns) that this invocation owns lies here, the next one
    // THREADS_M (THREADS_N) further on.
    let m_quad = thread / 32u / PATCHES_N * PATCH_M + thread % 32u / PATCH_N;
    let n_quad = thread / 32u % PATCHES_N * PATCH_N + thread % PATCH_N;

    var sums: array<vec4<f32>, TM * TN4>;
    for (var i = 0u; i < TM * TN4; i += 1u) { //unroll
        sums[i] = vec4<f32>();
    }
    // The first slice takes what K leaves over, so that the others are whole along K and need no
    // test. A range of K may be empty, and its first slice is one of zeros.
    var k = min(tile.k + (tile.k_end - tile.k + BK - 1u) % BK + 1u, tile.k_end);
    if a_has(thread) {
        a_put(thread, a_first(thread, a, tile.row, tile.row_end, tile.k, k));
    }
    if b_has(b_thread) {
        b_put(b_thread, b_first(b_thread, b, tile.col, params.n, tile.k, k));
    }
    let lines_of_a = a_lines(thread, a, tile.row, tile.row_end);
    let lines_of_b = b_lines(b_thread, b, tile.col, params.n);
    var a_next: array<a_raw4, 4>;
    var b_next: array<b_raw4, 4>;
    loop {
        // Loads in a block of their own stay where they are. A driver was seen to sink others to
        // the end of the slice, where they are waited for.
        let more = k < tile.k_end;
        if more {
            if a_has(thread) {
                a_next = a_fetch(lines_of_a, k);
            }
            if b_has(b_thread) {
                b_next = b_fetch(lines_of_b, k);
            }
        }
        workgroupBarrier();
        // These loops are left to the driver: unrolled here, its scheduling gives 37 TFLOP/s
        // instead of 45 (benches/record/NOTES.md).
        for (var kk = 0u; kk < BK; kk += 1u) {
            // THREADS_M and THREADS_N are multiples of 8: the exchange within groups of eight is
            // the same for all of an invocation's quads.
            let m_at = kk * A_QUADS + a_swizzled(m_quad, kk);
            let n_at = kk * B_QUADS + b_swizzled(n_quad, kk);
            var rows: array<vec4<f32>, TM / 4u>;
            var columns: array<vec4<f32>, TN4>;
            for (var i = 0u; i < TM / 4u; i += 1u) {
                rows[i] = a_slice[m_at + i * THREADS_M];
            }
            for (var j = 0u; j < TN4; j += 1u) {
                columns[j] = b_slice[n_at + j * THREADS_N];
            }
            for (var i = 0u; i < TM; i += 1u) {
                for (var j = 0u; j < TN4; j += 1u) {
                    sums[i * TN4 + j] =
                        fma(vec4<f32>(rows[i / 4u][i % 4u]), columns[j], sums[i * TN4 + j]);
                }
            }
        }
        if !more {
            break;
        }
        workgroupBarrier();
        if a_has(thread) {
            a_put(thread, a_decode(a_next));
        }
        if b_has(b_thread) {
            b_put(b_thread, b_decode(b_next));
        }
        k += BK;
    }

    for (var i = 0u; i < TM; i += 1u) { //unroll
        let row = tile.row + (i / 4u * THREADS_M + m_quad) * 4u + i % 4u;
        for (var j = 0u; j < TN4; j += 1u) { //unroll
            store(tile, row, tile.col + (j * THREADS_N + n_quad) * 4u, 4u, sums[i * TN4 + j]);
        }
    }
}
