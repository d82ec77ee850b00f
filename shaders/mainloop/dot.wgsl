// Mainloop for few rows against quantized weights, by products of bytes. 32 elements of a row of A
// become whole numbers of 24 bits, in three signed bytes each, times a power of two that is theirs;
// 32 weights are bytes times a scale, plus a bias. Their sums are whole numbers, and exact. Elements of
// f16 within 2^12 of the largest of their 32 lose nothing, nor do those of bf16 within 2^15.
//
// A subgroup, or several along K, has COLS columns, and each of its invocations 32 elements of K at a
// time: 16 bytes of codes are one load. A lies in workgroup memory, CHUNK elements of each row, for
// TURNS groups of columns one after the other.
//
// Numbers too large, too small, infinite or NaN are multiplied one by one.
// needs: B_MORE B_PAIRED B_PART B_Raw GROUP a_base a_line a_load8 a_widen8 add_stripes b_base b_bytes
//        b_line b_numbers b_raw by_ones linear_id params schedule store
// provides: BM BN CHUNK COLS DIGITS EXACT GROUPS LANES LEAST MOST QUADS ROUND ROWS STAGED
//        STRIPES STRIPES_AT SUMS THREADS TURNS WHOLE are_counted bytes_of digits dots exponent_of main powers
//        stage staged stripe_at stripe_put totals whole_numbers whole_sum

const ROWS: u32 = 1u; //param
// A multiple of 4.
const COLS: u32 = 4u; //param
// Groups of columns side by side, and invocations along K of each.
const LANES: u32 = 8u; //param
const STRIPES: u32 = 32u; //param
const TURNS: u32 = 1u; //param
// A multiple of GROUP.
const CHUNK: u32 = 1024u; //param
// Whether a row is a chunk, so that the driver knows how many steps there are.
const WHOLE: bool = false; //param

const BM: u32 = ROWS;
const BN: u32 = LANES * COLS * TURNS;
const THREADS: u32 = LANES * STRIPES;
const SUMS: u32 = ROWS * COLS;
const QUADS: u32 = COLS / 4u;
const ROUND: u32 = 1u;
const GROUPS: u32 = CHUNK / GROUP;
// Vectors of 16 bytes that a group takes: the digits of each value, half by half.
const DIGITS: u32 = 6u;
// Sums meet where A was, unless A is still of use.
const STRIPES_AT: u32 = select(0u, ROWS * GROUPS * DIGITS, TURNS > 1u);
const STAGED: u32 = max(ROWS * GROUPS * DIGITS, STRIPES_AT + THREADS);
// Exponents of f32 between which the largest element of a group lies, and the end of the weights' numbers.
const LEAST: u32 = 31u;
const MOST: u32 = 207u;
const EXACT: f32 = 0x1p30;

var<workgroup> staged: array<vec4<u32>, STAGED>;
// The sum of each half of a group.
var<workgroup> totals: array<i32, ROWS * GROUPS * 2u>;
// What a group's whole numbers are multiplied by; 0 if it has none.
var<workgroup> powers: array<f32, ROWS * GROUPS>;

fn stripe_at(i: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(staged[STRIPES_AT + i]);
}

fn stripe_put(i: u32, sums: vec4<f32>) {
    staged[STRIPES_AT + i] = bitcast<vec4<u32>>(sums);
}

// The exponent of the power of two that makes numbers up to this magnitude, given by its bits, whole
// numbers that three signed bytes can hold: at most 127·65536 + 127·256 + 127.
fn exponent_of(magnitude: u32) -> u32 {
    return (magnitude + 0x10101u) >> 23u;
}

// Numbers times a power of two, rounded; 0 where that is 0, whatever they are.
fn whole_numbers(numbers: vec4<f32>, by: f32) -> vec4<i32> {
    return select(vec4<i32>(), vec4<i32>(round(numbers * by)), vec4<bool>(by > 0.0));
}

// Whole numbers as three signed bytes each, the highest first, in the lowest bits.
fn digits(numbers: vec4<i32>) -> array<vec4<i32>, 3> {
    let high = (numbers + 128) >> vec4<u32>(8u);
    return array<vec4<i32>, 3>((high + 128) >> vec4<u32>(8u), high, numbers);
}

// The lowest bytes of four numbers, as a word.
fn bytes_of(numbers: vec4<i32>) -> u32 {
    let bytes = (bitcast<vec4<u32>>(numbers) & vec4<u32>(0xffu)) << vec4<u32>(0u, 8u, 16u, 24u);
    return bytes.x | bytes.y | bytes.z | bytes.w;
}

// Brings the rows' elements from k on, as many as there are, to workgroup memory: half a group at a time.
fn stage(thread: u32, base: u32, row: u32, row_end: u32, k: u32, k_end: u32) {
    for (var unit = thread; unit < ROWS * GROUPS * 2u; unit += THREADS) {
        let half = unit % 2u;
        let g = unit / 2u % GROUPS;
        let r = unit / 2u / GROUPS;
        let at = k + g * GROUP;
        if at < k_end {
            let begin = base + a_line(min(row + r, row_end - 1u)) * params.a_ld + at;
            var numbers: array<mat2x4<f32>, 4>;
            var most = vec4<u32>();
            for (var i = 0u; i < 4u; i += 1u) { //unroll
                numbers[i] = a_widen8(a_load8(begin + (half * 2u + i) % 4u * 8u, 8u));
                most = max(most, bitcast<vec4<u32>>(numbers[i][0]) & vec4<u32>(0x7fffffffu));
                most = max(most, bitcast<vec4<u32>>(numbers[i][1]) & vec4<u32>(0x7fffffffu));
            }
            let magnitude = max(max(most.x, most.y), max(most.z, most.w));
            let exponent = exponent_of(magnitude);
            let fits = magnitude == 0u || (exponent >= LEAST && exponent <= MOST);
            let power = clamp(exponent, LEAST, MOST);
            let by = select(0.0, bitcast<f32>((276u - power) << 23u), fits);
            var total = 0;
            var bytes: array<vec4<u32>, 3>;
            for (var i = 0u; i < 2u; i += 1u) { //unroll
                let low = whole_numbers(numbers[i][0], by);
                let high = whole_numbers(numbers[i][1], by);
                let sums = low + high;
                total += sums.x + sums.y + sums.z + sums.w;
                var first = digits(low);
                var second = digits(high);
                if B_PAIRED {
                    first = digits(vec4<i32>(low.x, low.z, high.x, high.z));
                    second = digits(vec4<i32>(low.y, low.w, high.y, high.w));
                }
                for (var d = 0u; d < 3u; d += 1u) { //unroll
                    bytes[d][2u * i] = bytes_of(first[d]);
                    bytes[d][2u * i + 1u] = bytes_of(second[d]);
                }
            }
            for (var d = 0u; d < 3u; d += 1u) { //unroll
                staged[(r * DIGITS + d * 2u + half) * GROUPS + g] = bytes[d];
            }
            totals[unit] = total;
            if half == 0u {
                powers[r * GROUPS + g] = select(0.0, bitcast<f32>((power - 22u) << 23u), fits);
            }
        }
    }
}

fn dots(a: vec4<u32>, b: vec4<u32>) -> i32 {
    return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
}

// Σ code · whole number of a group, rounded once; `total` is the sum of the whole numbers.
fn whole_sum(weights: array<vec4<u32>, 2>, group: array<vec4<u32>, DIGITS>, total: i32) -> f32 {
    var high = dots(weights[0], group[0]) + dots(weights[1], group[1]);
    let middle = dots(weights[0], group[2]) + dots(weights[1], group[3]);
    var low = middle * 256 + dots(weights[0], group[4]) + dots(weights[1], group[5]);
    if B_MORE > 0 {
        let upper = (total + 32768) >> 16u;
        high += B_MORE * upper;
        low += B_MORE * (total - upper * 65536);
    }
    let carry = (low + 32768) >> 16u;
    return fma(f32(high + carry), 65536.0, f32(low - carry * 65536));
}

// Whether a group's elements are whole numbers and its weights such that no product is infinite.
fn are_counted(power: f32, numbers: vec2<f32>) -> bool {
    return power > 0.0 && max(abs(numbers.x), abs(numbers.y)) < EXACT;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let tile = schedule(linear_id(workgroup));
    if !tile.live {
        return;
    }
    let lane = thread / STRIPES;
    let stripe = thread % STRIPES;
    let a = a_base(tile.batch);
    let b = b_base(tile.group);
    let once = WHOLE || tile.k_end - tile.k <= CHUNK;

    for (var turn = 0u; turn < TURNS; turn += 1u) {
        let first = tile.col + turn * LANES * COLS;
        let col = first + lane * COLS;
        var sums: array<f32, SUMS>;
        for (var i = 0u; i < SUMS; i += 1u) { //unroll
            sums[i] = 0.0;
        }
        for (var k = tile.k; k < tile.k_end; k += CHUNK) {
            if turn == 0u || !once {
                workgroupBarrier();
                stage(thread, a, tile.row, tile.row_end, k, tile.k_end);
                workgroupBarrier();
            }
            var groups = GROUPS;
            if !WHOLE {
                groups = min(CHUNK, tile.k_end - k) / GROUP;
            }
            // Without a branch; then what is left.
            var left = false;
            for (var g = stripe; g < groups; g += STRIPES) {
                var raw: array<B_Raw, COLS>;
                for (var c = 0u; c < COLS; c += 1u) { //unroll
                    raw[c] = b_raw(b + b_line(min(col + c, params.n - 1u)) * params.b_ld + k + g * GROUP);
                }
                for (var r = 0u; r < ROWS; r += 1u) { //unroll
                    var group: array<vec4<u32>, DIGITS>;
                    for (var i = 0u; i < DIGITS; i += 1u) { //unroll
                        group[i] = staged[(r * DIGITS + i) * GROUPS + g];
                    }
                    let at = r * GROUPS + g;
                    let total = totals[at * 2u] + totals[at * 2u + 1u];
                    let power = powers[at];
                    for (var c = 0u; c < COLS; c += 1u) { //unroll
                        let weights = array<vec4<u32>, 2>(b_bytes(raw[c], 0u), b_bytes(raw[c], 1u));
                        let numbers = b_numbers(raw[c]);
                        let product = whole_sum(weights, group, total) * (power * B_PART);
                        let sum = fma(numbers.x, product, numbers.y * (f32(total) * power));
                        let counts = are_counted(power, numbers);
                        sums[r * COLS + c] += select(0.0, sum, counts);
                        left |= !counts;
                    }
                }
            }
            for (var g = stripe; left && g < groups; g += STRIPES) {
                let at = k + g * GROUP;
                for (var i = 0u; i < SUMS; i += 1u) { //unroll
                    let raw = b_raw(b + b_line(min(col + i % COLS, params.n - 1u)) * params.b_ld + at);
                    if !are_counted(powers[i / COLS * GROUPS + g], b_numbers(raw)) {
                        let line = a_line(min(tile.row + i / COLS, tile.row_end - 1u));
                        sums[i] += by_ones(raw, a + line * params.a_ld + at);
                    }
                }
            }
            if WHOLE {
                break;
            }
        }
        for (var quad = 0u; quad < SUMS / 4u; quad += 1u) { //unroll
            workgroupBarrier();
            stripe_put(
                stripe * LANES + lane,
                vec4<f32>(sums[quad * 4u], sums[quad * 4u + 1u], sums[quad * 4u + 2u], sums[quad * 4u + 3u]),
            );
            add_stripes(thread);
            if thread < LANES {
                let to = first + thread * COLS + quad % QUADS * 4u;
                store(tile, tile.row + quad / QUADS, to, 4u, stripe_at(thread));
            }
        }
    }
}
