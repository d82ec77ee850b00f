// Mainloop for few rows against quantized weights, by products of bytes. 32 elements of a row of A,
// a group, become whole numbers of 24 bits (by permission 16 or 8) times one power of two; each
// number is three signed bytes (two, one). 32 weights are bytes times a scale, plus a bias. The sum
// of 32 products is then made of sums of bytes times bytes:
//
//     a = power · n            n = 65536·n2 + 256·n1 + n0         w = scale · code + bias
//
//     Σ a·w  =  scale · power · Σ n·code  +  bias · power · Σ n
//                               |
//                               +-- 65536 · Σ n2·code  +  256 · Σ n1·code  +  Σ n0·code
//
// Each of the three last sums takes eight products of four bytes by four (dot4I8Packed), in whole
// numbers. Formats whose halves of 32 weights have a scale each do this for each half. Σ n·code is
// exact with codes of 4 bits; others are rounded once more. Only a = power · n loses digits:
// elements of f16 within 2^12 of the largest of their 32 lose nothing, nor do those of bf16 within
// 2^15.
//
// A workgroup turns CHUNK elements of each row into bytes in workgroup memory, then multiplies. An
// invocation has COLS columns at a time, TURNS times, and SPAN elements of K, whose codes are one
// load. STRIPES invocations share columns; their sums meet in a tree whose order is fixed.
//
//     A  CHUNK elements of a row  --stage-->  n0 n1 n2, Σ n, power      in workgroup memory
//                                                |  one group at a time
//     B  SPAN codes of a column   --raw---->  bytes, scale, bias  --->  sums  --tree-->  C
//
// A group with an infinity, a NaN, or only very small numbers has an infinite power. Sums that are
// not finite in the end are therefore added anew, product by product (by_ones.wgsl).
// needs: B_CODE_STEP B_GROUPS B_PARTS B_MORE B_PAIRED B_Raw GROUP a_base a_line a_load8 a_widen8
//        add_stripes b_base b_bytes b_line b_numbers b_raw by_ones is_finite linear_id params
//        schedule store
// provides: BEYOND BM BN BYTES CHUNK COLS DIGITS EARLY GROUPS INFINITE LANES LEAST LEAST_TOTAL
//        ROUND ROWS SPAN SPANS STAGED STRIPES SUMS THREADS TURNS WHOLE bytes_of digits dots
//        exponent_of main powers raw_columns spans_from stage staged stripe_at stripe_put sum_of
//        total_of totals totals_at whole_numbers whole_sum

const ROWS: u32 = 1u; //param
// Groups of columns side by side, and invocations along K of each.
const LANES: u32 = 8u; //param
const STRIPES: u32 = 32u; //param
const TURNS: u32 = 1u; //param
// Signed bytes of an element of A.
const BYTES: u32 = 3u; //param
// Elements of each row in workgroup memory at a time: a multiple of SPAN.
const CHUNK: u32 = 1024u; //param
// Whether a row is a chunk, so that the driver knows how many steps there are.
const WHOLE: bool = false; //param

const COLS: u32 = 4u;
const BM: u32 = ROWS;
const BN: u32 = TURNS * LANES * COLS;
const THREADS: u32 = LANES * STRIPES;
// Vectors of an invocation, and how many of them are added up at a time.
const SUMS: u32 = ROWS * TURNS;
const ROUND: u32 = TURNS;
// Elements of a load, and loads of a chunk.
const SPAN: u32 = GROUP * B_GROUPS;
const SPANS: u32 = CHUNK / SPAN;
const GROUPS: u32 = CHUNK / GROUP;
// Vectors of 16 bytes that a group takes: the digits of each value, half by half.
const DIGITS: u32 = 2u * BYTES;
// Fractions of f32 from 2^23 less this on become too large for BYTES when they are rounded: that of
// 127.5, that of 127.5 · 256 + 127, and so on.
const BEYOND: u32 = 0x10101u - 0x10101u % (1u << (24u - 8u * BYTES));
// Vectors of workgroup memory that hold A, and later the sums.
const STAGED: u32 = max(ROWS * GROUPS * DIGITS, ROUND * THREADS);
// Exponents of f32 between which the largest element of a group lies.
const LEAST: u32 = 31u;
const INFINITE: u32 = 255u;
const LEAST_TOTAL: i32 = 16 * 32896;

const_assert SUMS * COLS <= 32u;
const_assert !WHOLE || SPANS % STRIPES == 0u;
// Whether the first codes are on their way while elements of A become bytes: if an invocation has
// at most two loads of codes, and small ones. Larger loads need the registers.
const EARLY: bool = WHOLE && TURNS == 1u && B_GROUPS == 1u && SPANS <= 2u * STRIPES;

var<workgroup> staged: array<vec4<u32>, STAGED>;
// The sums of the first half of each group, then of the second.
var<workgroup> totals: array<i32, 2u * ROWS * GROUPS>;
// The factor of a group's whole numbers.
var<workgroup> powers: array<f32, ROWS * GROUPS>;

fn stripe_at(i: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(staged[i]);
}

fn stripe_put(i: u32, sums: vec4<f32>) {
    staged[i] = bitcast<vec4<u32>>(sums);
}

// The exponent of the power of two that makes numbers up to this magnitude, given by its bits,
// whole numbers that BYTES signed bytes can hold: at most 127·65536 + 127·256 + 127 in three.
fn exponent_of(magnitude: u32) -> u32 {
    return (magnitude + BEYOND) >> 23u;
}

// Numbers times a power of two, rounded; 0 if that power is 0, whatever the numbers are.
fn whole_numbers(numbers: vec4<f32>, by: f32) -> vec4<i32> {
    return select(vec4<i32>(), vec4<i32>(round(numbers * by)), vec4<bool>(by > 0.0));
}

// Whole numbers as three signed bytes each, the lowest first, in the lowest bits.
fn digits(numbers: vec4<i32>) -> array<vec4<i32>, 3> {
    let middle = (numbers + 128) >> vec4<u32>(8u);
    return array<vec4<i32>, 3>(numbers, middle, (middle + 128) >> vec4<u32>(8u));
}

// The lowest bytes of four numbers, as a word.
fn bytes_of(numbers: vec4<i32>) -> u32 {
    let bytes = (bitcast<vec4<u32>>(numbers) & vec4<u32>(0xffu)) << vec4<u32>(0u, 8u, 16u, 24u);
    return bytes.x | bytes.y | bytes.z | bytes.w;
}

fn sum_of(numbers: vec4<i32>) -> i32 {
    return numbers.x + numbers.y + numbers.z + numbers.w;
}

// The sum of 16 whole numbers. Offsets of codes also want the sum of their third bytes, up to 16 ·
// 127, in the upper 12 bits. The lower 20 bits then have what the third bytes leave, from 16 ·
// -32896 to 16 · 32639.
fn total_of(total: i32, upper: i32) -> i32 {
    if B_MORE == 0 {
        return total;
    }
    return (upper << 20u) | (total - upper * 65536 + LEAST_TOTAL);
}

// Two sums over half a group that make the sum of its numbers: the first, times 65536, plus the
// second. The first is that of the third bytes; it is 0 if codes have no offset.
fn totals_at(half: u32, place: u32) -> vec2<i32> {
    let total = totals[half * ROWS * GROUPS + place];
    if B_MORE == 0 {
        return vec2<i32>(0, total);
    }
    return vec2<i32>(total >> 20u, (total & 0xfffff) - LEAST_TOTAL);
}

// Brings the rows' elements from k on, as many as there are, to workgroup memory: half a group at a
// time. Neighbours have neighbouring spans, so the first groups of all spans come before the second
// ones.
fn stage(thread: u32, base: u32, row: u32, row_end: u32, k: u32, k_end: u32) {
    for (var i = thread; i < ROWS * GROUPS * 2u; i += THREADS) {
        let half = i % 2u;
        let group = i / 2u % GROUPS;
        let r = i / 2u / GROUPS;
        let at = k + group * GROUP;
        if at < k_end {
            let begin = base + a_line(min(row + r, row_end - 1u)) * params.a_ld + at;
            var numbers: array<mat2x4<f32>, 4>;
            var most = vec4<u32>();
            for (var j = 0u; j < 4u; j += 1u) { //unroll
                numbers[j] = a_widen8(a_load8(begin + (half * 2u + j) % 4u * 8u, 8u));
                most = max(most, bitcast<vec4<u32>>(numbers[j][0]) & vec4<u32>(0x7fffffffu));
                most = max(most, bitcast<vec4<u32>>(numbers[j][1]) & vec4<u32>(0x7fffffffu));
            }
            let magnitude = max(max(most.x, most.y), max(most.z, most.w));
            let exponent = exponent_of(magnitude);
            let fits = magnitude == 0u || (exponent >= LEAST && exponent < INFINITE);
            let power = max(exponent, LEAST);
            let by = select(0.0, bitcast<f32>((252u + 8u * BYTES - power) << 23u), fits);
            var total = vec4<i32>();
            var upper = vec4<i32>();
            var bytes: array<vec4<u32>, BYTES>;
            for (var j = 0u; j < 2u; j += 1u) { //unroll
                let low = whole_numbers(numbers[j][0], by);
                let high = whole_numbers(numbers[j][1], by);
                var first = digits(low);
                var second = digits(high);
                if B_PAIRED {
                    first = digits(vec4<i32>(low.x, low.z, high.x, high.z));
                    second = digits(vec4<i32>(low.y, low.w, high.y, high.w));
                }
                total += low + high;
                upper += first[2] + second[2];
                for (var d = 0u; d < BYTES; d += 1u) { //unroll
                    bytes[d][2u * j] = bytes_of(first[d]);
                    bytes[d][2u * j + 1u] = bytes_of(second[d]);
                }
            }
            let place = group % B_GROUPS * SPANS + group / B_GROUPS;
            for (var d = 0u; d < BYTES; d += 1u) { //unroll
                staged[(r * DIGITS + d * 2u + half) * GROUPS + place] = bytes[d];
            }
            totals[(half * ROWS + r) * GROUPS + place] = total_of(sum_of(total), sum_of(upper));
            if half == 0u {
                powers[r * GROUPS + place] =
                    bitcast<f32>(select(INFINITE, power + 2u - 8u * BYTES, fits) << 23u);
            }
        }
    }
}

// Loads of the chunk that begins at k.
fn spans_from(k: u32, k_end: u32) -> u32 {
    if WHOLE {
        return SPANS;
    }
    return min(CHUNK, k_end - k) / SPAN;
}

// The codes of one load of each of COLS columns. Beyond the last column, that column is read again.
fn raw_columns(base: u32, col: u32, k: u32) -> array<B_Raw, COLS> {
    var raw: array<B_Raw, COLS>;
    for (var c = 0u; c < COLS; c += 1u) { //unroll
        raw[c] = b_raw(base + b_line(min(col + c, params.n - 1u)) * params.b_ld + k);
    }
    return raw;
}

// A number plus the products of 16 codes with one digit of each of 16 whole numbers.
fn dots(number: i32, codes: vec4<u32>, bytes: vec4<u32>) -> i32 {
    return number + dot4I8Packed(codes.x, bytes.x) + dot4I8Packed(codes.y, bytes.y)
        + dot4I8Packed(codes.z, bytes.z) + dot4I8Packed(codes.w, bytes.w);
}

// Σ (code + B_MORE) · whole number, rounded, by the sums of each digit. `more` is what B_MORE makes
// of the third bytes, and of the others.
fn whole_sum(sums: array<i32, BYTES>, more: vec2<i32>) -> f32 {
    var low = more.y + sums[0];
    if BYTES > 1u {
        low += sums[1u % BYTES] * 256;
    }
    if BYTES < 3u {
        return f32(low);
    }
    return fma(f32(more.x + sums[2u % BYTES]), 65536.0, f32(low));
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let tile = schedule(linear_id(workgroup), thread);
    if !tile.live {
        return;
    }
    let lane = thread / STRIPES;
    let stripe = thread % STRIPES;
    let a = a_base(tile.batch);
    let b = b_base(tile.group);

    var sums: array<vec4<f32>, SUMS>;
    for (var i = 0u; i < SUMS; i += 1u) { //unroll
        sums[i] = vec4<f32>();
    }
    for (var k = tile.k; k < tile.k_end; k += CHUNK) {
        let spans = spans_from(k, tile.k_end);
        var first: array<B_Raw, COLS>;
        if EARLY {
            first = raw_columns(b, tile.col + lane * COLS, k + stripe * SPAN);
        }
        stage(thread, a, tile.row, tile.row_end, k, tile.k_end);
        workgroupBarrier();
        for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
            let col = tile.col + (turn * LANES + lane) * COLS;
            for (var span = stripe; span < spans; span += STRIPES) {
                var raw: array<B_Raw, COLS>;
                if EARLY && span == stripe {
                    raw = first;
                } else {
                    raw = raw_columns(b, col, k + span * SPAN);
                }
                for (var in_span = 0u; in_span < B_GROUPS; in_span += 1u) { //unroll
                    for (var r = 0u; r < ROWS; r += 1u) { //unroll
                        let place = in_span * SPANS + span;
                        var group: array<vec4<u32>, DIGITS>;
                        for (var i = 0u; i < DIGITS; i += 1u) { //unroll
                            group[i] = staged[(r * DIGITS + i) * GROUPS + place];
                        }
                        let power = powers[r * GROUPS + place];
                        var both = array<vec2<i32>, 2>(
                            totals_at(0u, r * GROUPS + place), totals_at(1u, r * GROUPS + place));
                        if B_PARTS == 1u {
                            both[1] += both[0];
                        }
                        for (var c = 0u; c < COLS; c += 1u) { //unroll
                            var whole: array<i32, BYTES>;
                            for (var half = 0u; half < 2u; half += 1u) { //unroll
                                if half == 0u || B_PARTS == 2u {
                                    whole = array<i32, BYTES>();
                                }
                                let codes = b_bytes(raw[c], in_span * 2u + half);
                                for (var d = 0u; d < BYTES; d += 1u) { //unroll
                                    whole[d] = dots(whole[d], codes, group[2u * d + half]);
                                }
                                if half == 1u || B_PARTS == 2u {
                                    let total =
                                        f32(both[half].x * 65536 + both[half].y) * power;
                                    let numbers = b_numbers(raw[c], in_span * 2u + half);
                                    let product = whole_sum(whole, B_MORE * both[half])
                                        * (power * B_CODE_STEP);
                                    let sum = fma(numbers.y, total, sums[r * TURNS + turn][c]);
                                    sums[r * TURNS + turn][c] = fma(numbers.x, product, sum);
                                }
                            }
                        }
                    }
                }
            }
        }
        workgroupBarrier();
        if WHOLE {
            break;
        }
    }

    // Sums that are not finite, a bit each.
    var left = 0u;
    for (var i = 0u; i < SUMS * COLS; i += 1u) { //unroll
        left |= select(1u << i, 0u, is_finite(sums[i / COLS][i % COLS]));
    }
    for (; left != 0u; left &= left - 1u) {
        let i = firstTrailingBit(left);
        let col = tile.col + (i / COLS % TURNS * LANES + lane) * COLS + i % COLS;
        let column = b + b_line(min(col, params.n - 1u)) * params.b_ld;
        let row = a + a_line(min(tile.row + i / COLS / TURNS, tile.row_end - 1u)) * params.a_ld;
        var sum = 0.0;
        for (var k = tile.k; k < tile.k_end; k += CHUNK) {
            for (var span = stripe; span < spans_from(k, tile.k_end); span += STRIPES) {
                let at = k + span * SPAN;
                let raw = b_raw(column + at);
                for (var in_span = 0u; in_span < B_GROUPS; in_span += 1u) { //unroll
                    sum += by_ones(raw, in_span, row + at + in_span * GROUP);
                }
            }
        }
        for (var j = 0u; j < SUMS * COLS; j += 1u) { //unroll
            sums[j / COLS][j % COLS] = select(sums[j / COLS][j % COLS], sum, i == j);
        }
    }

    for (var r = 0u; r < ROWS; r += 1u) { //unroll
        for (var i = 0u; i < ROUND; i += 1u) { //unroll
            stripe_put(i * THREADS + stripe * LANES + lane, sums[r * TURNS + i]);
        }
        add_stripes(thread);
        // Only what this invocation wrote itself is read here.
        if thread < ROUND * LANES {
            let at = thread / LANES * THREADS + thread % LANES;
            store(tile, tile.row + r, tile.col + thread * COLS, 4u, stripe_at(at));
        }
        workgroupBarrier();
    }
}
