// The body of attention. A unit is a head of keys and values; `heads` heads of queries share it,
// and its `rows` rows are their queries, those of one token side by side. A workgroup has ROWS rows
// and a part of `span` keys, and takes KEYS keys at a time. The result is the output if the parts
// are one, and else, if PARTS, a row for each part: weighted values, largest score, and sum of
// weights. `before` is the number of keys before the first query, or of all that count, besides
// what `position` says.
const KEYS: u32 = LINES * TURNS;
// Keys whose scores are added at once.
const BATCH = LINES * AT_ONCE;
// A gap after the shares of a score lets neighbours read different banks.
const PITCH = SHARE | 1u;
var<workgroup> staged: array<vec4<f32>, STAGED>;
var<workgroup> shares: array<f32, ROWS * BATCH * PITCH>;
var<workgroup> scores: array<f32, ROWS * KEYS>;
var<workgroup> tops: array<f32, ROWS * CHUNKS>;
var<workgroup> factors: array<f32, ROWS>;

let part = group % parts;
let tile = group / parts % tiles;
// A workgroup beyond the last unit repeats that unit's work and writes nothing.
let unit = min(group / parts / tiles, units - 1u);
let is_there = group / parts / tiles < units;
let keys = k_shape[k_ndim - 2u];
let first = tile * ROWS;
let count = min(ROWS, rows - first);
let row = unit * rows + first;

// The keys that an invocation's own row sees, and the range that all rows of the workgroup see.
let own_row = min(local_index % ROWS, count - 1u);
let place = placed(unit, before);
let own = seen(place, (first + own_row) / heads, window);
var start = part * span;
var stop = min(start + span, keys);
let begin = max(start, seen(place, first / heads, window).x);
let end = min(stop, seen(place, (first + count - 1u) / heads, window).y);
if !PLACED {
    // Numbers that are the same for the whole workgroup: only they may bound a loop with barriers.
    // Steps begin at multiples of KEYS: a row has the same steps in every tile.
    start = max(start, seen(before, first / heads, window).x / KEYS * KEYS);
    stop = min(stop, seen(before, (first + count - 1u) / heads, window).y);
}

let step_q = q_strides[q_ndim - 1u];
let width = q_shape[q_ndim - 1u];
let lane = local_index % SHARE;
let line = local_index / SHARE;
let at_k = k_row(unit * keys);
let step_k = vec2(k_strides[k_ndim - 2u], k_strides[k_ndim - 1u]);
let at_mask = mask_row(row + own_row);
let step_mask = mask_strides[mask_ndim - 1u];

let column = local_index % COLUMNS;
let v_lane = local_index / COLUMNS;
let range = vec2(begin, end);
let at_v = values_row(unit * keys);
let step_v = vec2(values_strides[values_ndim - 2u], values_strides[values_ndim - 1u]);
let v_width = values_shape[values_ndim - 1u];
let v_count = min(4u, v_width - 4u * column);

var top = ABSENT;
var total = 0.0;
if SINKS {
    top = marked(sinks_get(sinks_row(row + own_row), 0u, 1u, 1u).x);
    total = select(0.0, 1.0, local_index < ROWS);
}
var sums = array<vec4<f32>, ROWS>();
for (var base = start; base < stop; base += KEYS) {
    let is_busy = begin < end && base < end && base + KEYS > begin;
    // The loads of keys, values and queries are under way at once.
    var k4: array<vec4<f32>, DEEP * TURNS>;
    var v4: array<vec4<f32>, HELD>;
    if is_busy {
        k4 = keys_at(at_k, base + line, end - 1u, lane, step_k, width);
        if v_lane < LANES {
            v4 = values_at(at_v, base + v_lane, range, column, step_v, v_count);
        }
    }
    if base == start {
        for (var at = local_index; at < ROWS * BLOCKS; at += SIZE) {
            let i = at % BLOCKS * 4u;
            staged[at] = vec4<f32>();
            if at / BLOCKS < count {
                staged[at] = q_get(q_row(row + at / BLOCKS), i, step_q, min(4u, width - i));
            }
        }
    }
    workgroupBarrier();
    var products = array<f32, ROWS * TURNS>();
    for (var first = lane; is_busy && first < BLOCKS; first += DEEP * SHARE) {
        if first > lane {
            k4 = keys_at(at_k, base + line, end - 1u, first, step_k, width);
        }
        for (var n = 0u; n < DEEP; n += 1u) { //unroll
            let block = first + n * SHARE;
            if block < BLOCKS {
                for (var r = 0u; r < ROWS; r += 1u) { //unroll
                    let q4 = staged[r * BLOCKS + block];
                    for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
                        products[turn * ROWS + r] += dot(q4, k4[n * TURNS + turn]);
                    }
                }
            }
        }
    }
    for (var batch = 0u; batch < TURNS / AT_ONCE; batch += 1u) { //unroll
        for (var n = 0u; n < AT_ONCE; n += 1u) { //unroll
            for (var r = 0u; r < ROWS; r += 1u) { //unroll
                let share = (r * BATCH + n * LINES + line) * PITCH;
                shares[share + lane] = products[(batch * AT_ONCE + n) * ROWS + r];
            }
        }
        workgroupBarrier();
        for (var at = local_index; at < ROWS * BATCH; at += SIZE) {
            let key = base + batch * BATCH + at / ROWS;
            var s = ABSENT;
            if key >= own.x && key < min(own.y, end) {
                let share = (at % ROWS * BATCH + at / ROWS) * PITCH;
                var sum = 0.0;
                for (var l = 0u; l < SHARE; l += 1u) {
                    sum += shares[share + l];
                }
                s = scale * sum;
                if CAPPED {
                    s = capped(vec4(s), softcap).x;
                }
                if MASKED {
                    let i = key / 4u * 4u;
                    let four = mask_get(at_mask, i, step_mask, min(4u, keys - i));
                    s += one_of(four, key % 4u);
                }
                s = marked(s);
            }
            scores[batch * ROWS * BATCH + at] = s;
        }
        workgroupBarrier();
    }

    if local_index < ROWS * CHUNKS {
        var most = ABSENT;
        for (var at = local_index; at < ROWS * KEYS; at += ROWS * CHUNKS) {
            most = max(most, scores[at]);
        }
        tops[local_index] = most;
    }
    workgroupBarrier();
    let before_top = top;
    for (var chunk = 0u; chunk < CHUNKS; chunk += 1u) {
        top = max(top, tops[chunk * ROWS + local_index % ROWS]);
    }
    let factor = exponential(before_top, top);
    total *= factor;
    for (var at = local_index; at < ROWS * KEYS; at += SIZE) {
        let s = scores[at];
        let p = select(exponential(s, top), 0.0, s == ABSENT);
        scores[at] = p;
        total += p;
    }
    if local_index < ROWS {
        factors[local_index] = factor;
    }
    workgroupBarrier();

    for (var r = 0u; r < ROWS; r += 1u) { //unroll
        sums[r] *= factors[r];
    }
    for (var at = v_lane; is_busy && v_lane < LANES && at < KEYS; at += HELD * LANES) {
        if at > v_lane {
            v4 = values_at(at_v, base + at, range, column, step_v, v_count);
        }
        for (var n = 0u; n < HELD; n += 1u) { //unroll
            for (var r = 0u; r < ROWS; r += 1u) { //unroll
                sums[r] += scores[(at + n * LANES) * ROWS + r] * v4[n];
            }
        }
    }
}

// The weights of a row are added in chunks.
shares[local_index] = total;
workgroupBarrier();
if local_index < ROWS * CHUNKS {
    var some = 0.0;
    for (var at = local_index; at < SIZE; at += ROWS * CHUNKS) {
        some += shares[at];
    }
    tops[local_index] = some;
}
if local_index < ROWS {
    factors[local_index] = top;
}
for (var r = 0u; r < ROWS; r += 1u) { //unroll
    staged[local_index] = sums[r];
    workgroupBarrier();
    if is_there && r < count && local_index < COLUMNS {
        var sum = vec4<f32>();
        for (var l = 0u; l < LANES; l += 1u) {
            sum += staged[l * COLUMNS + column];
        }
        var all = 0.0;
        for (var chunk = 0u; chunk < CHUNKS; chunk += 1u) {
            all += tops[chunk * ROWS + r];
        }
        let step_y = y_strides[y_ndim - 1u];
        if PARTS {
            let at_y = y_row((row + r) * parts + part);
            y_put(at_y, 4u * column, step_y, 4u, sum);
            if column == 0u {
                y_put(at_y, 4u * COLUMNS, step_y, 4u, vec4(factors[r], all, 0.0, 0.0));
            }
        } else {
            let y4 = quotient(sum, factors[r], all, row);
            y_put(y_row(row + r), 4u * column, step_y, v_count, y4);
        }
    }
    workgroupBarrier();
}
