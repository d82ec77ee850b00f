// Mainloop for matrix units. A workgroup computes a BM×BN tile of C, and each of its subgroups a
// subtile of that, as matrices of sums that the whole subgroup holds in registers.
//
//          BN
//     +---------+    Here a tile has 2 × 2 subgroups, and a digit is a matrix of SIZE × SIZE sums
//     | 0 0 1 1 |    with the number of its subgroup. Along N the matrices of a subgroup lie side
//  BM | 2 2 3 3 |    by side. Along M those of all subgroups alternate, so that each subgroup has
//     | 0 0 1 1 |    some in every part of the tile.
//     | 2 2 3 3 |
//     +---------+
//
// Slices of A and B, BK deep, go from memory to registers (fetch), from there to a panel in
// workgroup memory (put, panel.wgsl), and from there to matrices, which are multiplied. While a
// slice is multiplied, the next ones are on their way to registers. At the end the sums go through
// workgroup memory to C. With two slices on their way (AHEAD):
//
//     fetch 0, fetch 1
//     put 0 | barrier | multiply 0, fetch 2 | barrier
//     put 1 | barrier | multiply 1, fetch 3 | barrier
//     put 2 | barrier | multiply 2, fetch 4 | barrier
//     ...
//     for each matrix: sums to workgroup memory | barrier | from there to C | barrier
//
// The sums are those of the product, for these reasons:
// - Each step along K is in one slice, and each slice is multiplied once. A subgroup multiplies all
//   steps of a slice; in small tiles several subgroups share a subtile, each takes DEPTH of the
//   steps, and their sums are added at the end.
// - Between two barriers a panel is either written or read. The first barrier ends the writing
//   before anybody reads, the second ends the reading before the next slice is written.
// - Steps beyond K are zeros and add nothing. Lines beyond an edge give sums that are not stored.
//   Slices beyond the last are fetched, from its place, and never multiplied.
// - CHAIN, LOOPS, RANGES and SHARED change how the loop runs, not what it adds: shorter chains of
//   additions, no matrices without rows, zeros for elements of other ranges of K, and another order
//   of the steps, in A and in B alike.
//
// SPIR-V does not promise, for the text that naga makes of this, that what other invocations stored
// in a panel before a barrier is seen after it (ARCHITECTURE.md, "Matrix units").
// needs: A_FETCHES A_K_CONTIGUOUS A_Matrix A_Words B_FETCHES B_PART B_SPAN B_Words C_Matrix C_STEP
//        Element SIZE Sum VECTOR a_base a_fetch a_matrix a_put b_base b_fetch b_fetch_all b_matrix
//        b_prepare b_put b_put_all linear_id params restored scales_of schedule store
// provides: AHEAD A_TILE BK BM BN B_TILE CHAIN DEPTH ELEMENTS LOOPS MATRICES_M MATRICES_N PAD PARTS
//        PART_AHEAD PLACES RANGES SHARED STEP SUBGROUP SUBGROUPS_K SUBGROUPS_M SUBGROUPS_N SUBTILES
//        THREADS TOGETHER main shown shown_at step_of step_within subtile_barrier within

const BM: u32 = 128u; //param
const BN: u32 = 128u; //param
const BK: u32 = 32u; //param
// Subgroups along M, along N and along K.
const SUBGROUPS_M: u32 = 2u; //param
const SUBGROUPS_N: u32 = 2u; //param
const SUBGROUPS_K: u32 = 1u; //param
// Subgroups along K whose sums have places in workgroup memory at a time. Fewer places leave room
// for more workgroups on a core.
const PLACES: u32 = 1u; //param
// Slices that are on their way at a time: more for small tiles, whose arithmetic does not last as
// long as a load. A K split is a multiple of AHEAD slices.
const AHEAD: u32 = 1u; //param
// Elements between the lines of a slice in workgroup memory.
const PAD: u32 = 8u; //param
// Steps along K after which sums are added to those of the steps before, and begin anew. Matrix
// units round toward zero, so the error grows with the length of a chain of additions. 0 if one
// chain has all steps.
const CHAIN: u32 = 0u; //param
// Whether ranges of K begin and end anywhere. Slices then begin at whole vectors. Elements of other
// ranges in them count as zero, in A and in B: either may hold infinities.
const RANGES: bool = false; //param
// Loops over K, of which a tile takes one: groups have many tiles with few rows. Loop i multiplies
// the first i + 1 of LOOPS equal parts of a tile, and serves tiles that have no rows beyond them.
const LOOPS: u32 = 1u; //param
// Slices that are on their way at a time in loops over parts of a tile: their arithmetic is shorter
// than a load, and fewer sums leave more registers. If K is no multiple of PART_AHEAD slices, tiles
// take the last loop.
const PART_AHEAD: u32 = 1u; //param

const SUBGROUP: u32 = 32u;
const A_TILE: u32 = BM;
const B_TILE: u32 = BN;
const SUBTILES: u32 = SUBGROUPS_M * SUBGROUPS_N;
const THREADS: u32 = SUBTILES * SUBGROUPS_K * SUBGROUP;
// Steps along K of a slice that a subgroup takes.
const DEPTH: u32 = BK / SUBGROUPS_K;
// A subgroup's matrices along M and along N. Along M the matrices of all subgroups alternate, so
// that each subgroup has some in every part of a tile.
const MATRICES_M: u32 = BM / SUBGROUPS_M / SIZE;
const MATRICES_N: u32 = BN / SUBGROUPS_N / SIZE;
// Elements of a matrix.
const ELEMENTS: u32 = SIZE * SIZE;
// Elements that the subgroups of a subtile store at a time.
const TOGETHER: u32 = SUBGROUPS_K * SUBGROUP * C_STEP;
// Parts in which a matrix is stored.
const PARTS: u32 = (ELEMENTS + TOGETHER - 1u) / TOGETHER;
const_assert CHAIN % (AHEAD * BK) == 0u;
// Whether AHEAD slices share the loads of codes. One slice has only 32 bytes of a row of 4-bit
// codes, and memory is slow at pieces so short; AHEAD slices have more. Each load then has B_PART
// steps of every slice, so the steps of one slice lie apart, in A too. A is then read in short
// pieces: this pays if its tile is smaller than that of B.
const SHARED: bool = B_SPAN == 32u && AHEAD > 1u && A_TILE < B_TILE && !RANGES;
const_assert !SHARED || B_PART % VECTOR == 0u;
// Distance along K of the first steps of two slices.
const STEP: u32 = select(BK, B_PART, SHARED);

// Places for matrices of sums: WGSL gives no access to the elements of one in registers.
var<workgroup> shown: array<vec4<Sum>, SUBTILES * PLACES * ELEMENTS / 4u>;

// C_STEP elements from here on; the components after them mean nothing.
fn shown_at(at: u32) -> vec4<f32> {
    if C_STEP == 4u {
        return vec4<f32>(shown[at / 4u]);
    }
    return vec4<f32>(f32(shown[at / 4u][at % 4u]));
}

// A barrier of the subgroups that share a subtile: one alone waits for no other.
fn subtile_barrier() {
    if SUBGROUPS_K == 1u {
        subgroupBarrier();
    } else {
        workgroupBarrier();
    }
}

// Where step `at` of a slice lies along K, from the slice's first step on.
fn step_of(at: u32) -> u32 {
    if SHARED {
        return at / B_PART * B_SPAN + at % B_PART;
    }
    return at;
}

// A step along K; beyond the end of its range, the start of the last vector in it.
fn step_within(step: u32, k_end: u32, vector: u32) -> u32 {
    if RANGES {
        return min(step, (max(k_end, 1u) - 1u) / vector * vector);
    }
    return step;
}

// Elements at some steps along K; zeros for those outside the range.
fn within(elements: vec4<Element>, steps: vec4<u32>, range: vec2<u32>) -> vec4<Element> {
    if RANGES {
        let inside = (steps >= vec4<u32>(range.x)) & (steps < vec4<u32>(range.y));
        return select(vec4<Element>(), elements, inside);
    }
    return elements;
}

// Matrices ask for uniform control flow. All invocations return or none does, but naga takes no
// variable to be uniform; it files its doubts about matrices under those about derivatives.
@compute @workgroup_size(THREADS) @diagnostic(off, derivative_uniformity)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let tile = schedule(linear_id(workgroup), lane);
    if !tile.live {
        return;
    }
    b_prepare(thread, THREADS);
    let a = a_base(tile.batch);
    let b = b_base(tile.group);
    let subtile = subgroup % SUBTILES;
    let m_at = subtile / SUBGROUPS_N * SIZE;
    let n_at = subtile % SUBGROUPS_N * MATRICES_N * SIZE;
    let k_subgroup = subgroup / SUBTILES % SUBGROUPS_K;
    let k_at = k_subgroup * DEPTH;
    let range = vec2<u32>(tile.k, tile.k_end);
    var k = tile.k;
    if RANGES {
        k = k / VECTOR * VECTOR;
    }

    var sums: array<C_Matrix, MATRICES_M * MATRICES_N>;
    for (var i = 0u; i < MATRICES_M * MATRICES_N; i += 1u) { //unroll
        sums[i] = C_Matrix();
    }
    var a_next: array<array<A_Words, A_FETCHES>, PART_AHEAD>;
    var b_next: array<array<B_Words, B_FETCHES>, PART_AHEAD>;
    var b_now: array<array<B_Words, B_FETCHES>, AHEAD>;
    for (var s = 0u; s < AHEAD; s += 1u) { //unroll
        a_next[s] = a_fetch(thread, a, tile.row, tile.row_end, k + s * STEP, range.y, A_FETCHES);
        if SHARED {
            b_next[s] = b_fetch_all(thread, b, tile.col, params.n, k, s);
        } else {
            b_next[s] = b_fetch(thread, b, tile.col, params.n, k + s * BK, range.y, B_FETCHES);
        }
    }
    // The sums before the chain at hand. With one chain alone, neither this nor the loop around its
    // steps is left in the compiled code.
    var before: array<C_Matrix, MATRICES_M * MATRICES_N>;
    let rows_left = tile.row_end - tile.row;
    let whole_slices = (range.y - range.x) % (PART_AHEAD * BK) == 0u;
    let part = min((rows_left - 1u) / (BM / LOOPS), LOOPS - 1u);
    let own_loop = select(LOOPS - 1u, part, whole_slices);
    for (var which = 0u; which < LOOPS; which += 1u) { //unroll
        // A subgroup's matrices along M that have rows, and the loads of A for these.
        let live: u32 = MATRICES_M * (which + 1u) / LOOPS;
        let loads_of_a = select(A_FETCHES, (A_FETCHES * (which + 1u) + LOOPS - 1u) / LOOPS,
            A_K_CONTIGUOUS);
        // The last loop has AHEAD slices on their way.
        let slices: u32 = AHEAD + (PART_AHEAD - AHEAD) * (1u - (which + 1u) / LOOPS);
        while which == own_loop {
            for (var s = 0u; s < slices - AHEAD; s += 1u) { //unroll
                let more = k + (AHEAD + s) * BK;
                a_next[AHEAD + s] =
                    a_fetch(thread, a, tile.row, tile.row_end, more, range.y, loads_of_a);
                b_next[AHEAD + s] =
                    b_fetch(thread, b, tile.col, params.n, more, range.y, B_FETCHES);
            }
            var end = range.y;
            if CHAIN > 0u {
                end = min(k + CHAIN, end);
                for (var i = 0u; i < live * MATRICES_N; i += 1u) { //unroll
                    before[i] = sums[i];
                    sums[i] = C_Matrix();
                }
            }
            for (; k < end; k += slices * BK) {
                // The last slices are fetched once more at the end, for the reason given at
                // x_fetch in panel.wgsl.
                if SHARED {
                    let next = min(k + AHEAD * BK, range.y - AHEAD * BK);
                    for (var s = 0u; s < AHEAD; s += 1u) { //unroll
                        b_now[s] = b_next[s];
                        b_next[s] = b_fetch_all(thread, b, tile.col, params.n, next, s);
                    }
                }
                for (var s = 0u; s < slices; s += 1u) { //unroll
                    a_put(thread, a_next[s], k + s * BK, range, loads_of_a);
                    if SHARED {
                        for (var f = 0u; f < AHEAD; f += 1u) { //unroll
                            b_put_all(thread, b_now[f], f, s);
                        }
                    } else {
                        b_put(thread, b_next[s], k + s * BK, range, B_FETCHES);
                    }
                    workgroupBarrier();
                    // This loop is left to the driver: repeated here, the loop around it is
                    // unrolled as well, and its loads are not fetched ahead any more.
                    for (var kk = k_at; kk < k_at + DEPTH; kk += SIZE) {
                        var rows: array<A_Matrix, MATRICES_M>;
                        for (var i = 0u; i < live; i += 1u) { //unroll
                            rows[i] = a_matrix(m_at + i * SUBGROUPS_M * SIZE, kk);
                        }
                        for (var j = 0u; j < MATRICES_N; j += 1u) { //unroll
                            let columns = b_matrix(n_at + j * SIZE, kk);
                            for (var i = 0u; i < live; i += 1u) { //unroll
                                sums[i * MATRICES_N + j] =
                                    coopMultiplyAdd(rows[i], columns, sums[i * MATRICES_N + j]);
                            }
                        }
                    }
                    var next = k + s * STEP + slices * BK;
                    if !RANGES {
                        next = min(next, range.y - slices * BK + s * STEP);
                    }
                    a_next[s] =
                        a_fetch(thread, a, tile.row, tile.row_end, next, range.y, loads_of_a);
                    if !SHARED {
                        b_next[s] =
                            b_fetch(thread, b, tile.col, params.n, next, range.y, B_FETCHES);
                    }
                    workgroupBarrier();
                }
            }
            if CHAIN > 0u {
                for (var i = 0u; i < live * MATRICES_N; i += 1u) { //unroll
                    sums[i] = before[i] + sums[i];
                }
            }
            if CHAIN == 0u || k >= range.y {
                break;
            }
        }
    }

    // Where the invocation's elements lie in a part. What they are multiplied by is loaded at once:
    // a load between two stores would be waited for.
    let own = (k_subgroup * SUBGROUP + lane) * C_STEP;
    let scales = scales_of(tile, tile.row + m_at + own / SIZE, tile.col + n_at + own % SIZE);
    for (var i = 0u; i < MATRICES_M; i += 1u) { //unroll
        // Parts without rows are left out; all invocations agree.
        if LOOPS == 1u || i * SUBGROUPS_M * SIZE < rows_left {
            for (var j = 0u; j < MATRICES_N; j += 1u) { //unroll
                // Subgroups that share a place add to what it has, one after the other.
                for (var turn = 0u; turn < SUBGROUPS_K / PLACES; turn += 1u) { //unroll
                    if k_subgroup / PLACES == turn {
                        let place = &shown[subgroup % (SUBTILES * PLACES) * (ELEMENTS / 4u)];
                        let ld = SIZE / 4u;
                        if turn > 0u {
                            let sum = coopLoadT<C_Matrix>(place, ld) + sums[i * MATRICES_N + j];
                            coopStoreT(sum, place, ld);
                        } else {
                            let matrix = sums[i * MATRICES_N + j];
                            coopStoreT(matrix, place, ld);
                        }
                    }
                    subtile_barrier();
                }
                for (var part = 0u; part < PARTS; part += 1u) { //unroll
                    let at = part * TOGETHER + own;
                    if TOGETHER <= ELEMENTS || at < ELEMENTS {
                        // The places of a subtile lie SUBTILES matrices apart. (`subtile` is found
                        // anew: otherwise NVIDIA's driver makes 4096³ of bf16 3% slower.)
                        var sum = shown_at(subgroup % SUBTILES * ELEMENTS + at);
                        for (var other = 1u; other < PLACES; other += 1u) {
                            sum += shown_at((other * SUBTILES + subtile) * ELEMENTS + at);
                        }
                        let row = tile.row + m_at + i * SUBGROUPS_M * SIZE + at / SIZE;
                        let col = tile.col + n_at + j * SIZE + at % SIZE;
                        store(tile, row, col, C_STEP, restored(scales, i, j, part, sum));
                    }
                }
                subtile_barrier();
            }
        }
    }
}
