// Mainloop for few rows against quantized weights, in f32.
//
// A workgroup computes ROWS rows and LANES·COLS columns of C. K is spread over STRIPES of its
// invocations. An invocation keeps 32 elements of each row of A in registers while COLS columns
// pass, with 32 codes of each; then it takes the 32 steps of K that lie STRIPES·32 further on.
//
//     K       |  32  |  32  |  32  | ... |     32      |  32  |  32  | ...
//     stripe  |   0  |   1  |   2  | ... | STRIPES - 1 |   0  |   1  | ...
//
// Σ element · (scale · code + bias) is scale · Σ element · code + bias · Σ element. So scale and
// bias are multiplied with sums, and the second sum serves all columns. Formats whose halves of 32
// codes have a scale each do this for each half. If the result is not finite, the 32 products are
// added one by one instead (by_ones.wgsl).
//
// Each step along K belongs to one stripe. The stripes' sums meet in workgroup memory, in two steps
// whose order is fixed: C has the same bits in every run.
// needs: B_CODE_STEP B_PARTS B_Raw GROUP a_base a_line a_load8 a_widen8 b_base b_four b_line
//        b_numbers b_prepare b_raw by_ones code_at is_finite linear_id params schedule store
// provides: BM BN COLS LANES PARTIALS QUADS ROUND ROWS STRIPES SUMS THREADS WORDS main partials
//        staged

const ROWS: u32 = 4u; //param
// A multiple of 4.
const COLS: u32 = 8u; //param
// Groups of columns side by side, and invocations along K of each.
const LANES: u32 = 1u; //param
const STRIPES: u32 = 64u; //param

const BM: u32 = ROWS;
const BN: u32 = LANES * COLS;
const THREADS: u32 = LANES * STRIPES;
const SUMS: u32 = ROWS * COLS;
const QUADS: u32 = COLS / 4u;
// Vectors of sums of an invocation, and invocations that add up each.
const ROUND: u32 = SUMS / 4u;
const PARTIALS: u32 = THREADS / ROUND;
// Fours of codes that have a scale.
const WORDS: u32 = GROUP / 4u / B_PARTS;

const_assert SUMS <= 32u && PARTIALS * ROUND == THREADS && PARTIALS % LANES == 0u;

var<workgroup> staged: array<vec4<f32>, THREADS * ROUND>;
var<workgroup> partials: array<vec4<f32>, THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let tile = schedule(linear_id(workgroup), thread);
    if !tile.live {
        return;
    }
    b_prepare(thread, THREADS);
    let lane = thread / STRIPES;
    let stripe = thread % STRIPES;
    let a = a_base(tile.batch);
    let b = b_base(tile.group);

    let col = tile.col + lane * COLS;
    var sums: array<f32, SUMS>;
    for (var i = 0u; i < SUMS; i += 1u) { //unroll
        sums[i] = 0.0;
    }
    for (var k = tile.k + stripe * GROUP; k < tile.k_end; k += STRIPES * GROUP) {
        var raw: array<B_Raw, COLS>;
        for (var c = 0u; c < COLS; c += 1u) { //unroll
            raw[c] = b_raw(b + b_line(min(col + c, params.n - 1u)) * params.b_ld + k);
        }
        var rows: array<f32, ROWS * GROUP>;
        var totals: array<f32, ROWS * B_PARTS>;
        for (var r = 0u; r < ROWS; r += 1u) { //unroll
            let begin = a + a_line(min(tile.row + r, tile.row_end - 1u)) * params.a_ld + k;
            for (var part = 0u; part < B_PARTS; part += 1u) { //unroll
                var total = vec4<f32>();
                for (var i = 0u; i < WORDS / 2u; i += 1u) { //unroll
                    let first = (part * WORDS / 2u + i) * 8u;
                    let eight = a_widen8(a_load8(begin + first, 8u));
                    for (var j = 0u; j < 8u; j += 1u) { //unroll
                        rows[r * GROUP + first + j] = eight[j / 4u][j % 4u];
                    }
                    total += eight[0] + eight[1];
                }
                totals[r * B_PARTS + part] = total.x + total.y + total.z + total.w;
            }
        }
        // Sums that are not finite, a bit each.
        var left = 0u;
        for (var c = 0u; c < COLS; c += 1u) { //unroll
            var group = array<f32, ROWS>();
            for (var part = 0u; part < B_PARTS; part += 1u) { //unroll
                var products: array<f32, ROWS>;
                for (var r = 0u; r < ROWS; r += 1u) { //unroll
                    products[r] = 0.0;
                }
                for (var i = 0u; i < WORDS; i += 1u) { //unroll
                    let word = part * WORDS + i;
                    let codes = b_four(raw[c], word);
                    for (var byte = 0u; byte < 4u; byte += 1u) { //unroll
                        let at = word / 4u * 16u + code_at(word % 4u, byte);
                        for (var r = 0u; r < ROWS; r += 1u) { //unroll
                            products[r] = fma(rows[r * GROUP + at], codes[byte], products[r]);
                        }
                    }
                }
                let numbers = b_numbers(raw[c], part);
                for (var r = 0u; r < ROWS; r += 1u) { //unroll
                    let least = numbers.y * totals[r * B_PARTS + part];
                    let sum = fma(numbers.x, B_CODE_STEP * products[r], least);
                    group[r] += sum;
                }
            }
            for (var r = 0u; r < ROWS; r += 1u) { //unroll
                let finite = is_finite(group[r]);
                sums[r * COLS + c] += select(0.0, group[r], finite);
                left |= select(1u << (r * COLS + c), 0u, finite);
            }
        }
        for (; left != 0u; left &= left - 1u) {
            let i = firstTrailingBit(left);
            let line = b_line(min(col + i % COLS, params.n - 1u));
            let row = a_line(min(tile.row + i / COLS, tile.row_end - 1u));
            let sum = by_ones(b_raw(b + line * params.b_ld + k), 0u, a + row * params.a_ld + k);
            for (var j = 0u; j < SUMS; j += 1u) { //unroll
                sums[j] += select(0.0, sum, i == j);
            }
        }
    }

    // Stripes meet in two steps: a tree of more steps would wait at more barriers.
    for (var i = 0u; i < ROUND; i += 1u) { //unroll
        staged[i * THREADS + stripe * LANES + lane] =
            vec4<f32>(sums[i * 4u], sums[i * 4u + 1u], sums[i * 4u + 2u], sums[i * 4u + 3u]);
    }
    workgroupBarrier();
    var first_sum = vec4<f32>();
    for (var i = 0u; i < ROUND; i += 1u) { //unroll
        first_sum += staged[thread / PARTIALS * THREADS + i * PARTIALS + thread % PARTIALS];
    }
    partials[thread] = first_sum;
    workgroupBarrier();
    if thread < ROUND * LANES {
        let quad = thread / LANES;
        var sum = vec4<f32>();
        for (var i = 0u; i < PARTIALS / LANES; i += 1u) { //unroll
            sum += partials[quad * PARTIALS + i * LANES + thread % LANES];
        }
        let to = tile.col + thread % LANES * COLS + quad % QUADS * 4u;
        store(tile, tile.row + quad / QUADS, to, 4u, sum);
    }
}
