// The body of attention on matrix units. Units, rows and parts are those of attention.wgsl. A
// workgroup has ROWS rows and takes KEYS keys at a time; four subgroups share the matrices:
//
//     scores  0 1    weighted values  0 1    Each digit is half of the rows, by half of the keys
//             2 3                     2 3    or half of a value's elements.
//
// Keys, and then values, go from registers to `staged`, which all subgroups read. Scores go to
// workgroup memory, where two invocations share a row and make weights of them. The weighted values
// stay in registers. Scores are exponents of 2, and a weight is 2^(score − top). `top` begins LIFT
// below the row's largest score, and follows when a score lies more than ROOM above. So weights
// neither leave f16 nor lose much of a small score. Only then are the sums of the row scaled, by
// way of workgroup memory. Other rows are multiplied by 1: a row's bits do not depend on others.
const LIFT = 11.0;
const ROOM = 15.0;
// Units whose tiles take turns.
const BAND = 8u;
// Vectors of four from one row to the next.
const S_LD = KEYS / 4u + 2u;
// Vectors of a row of scores for each of two invocations.
const TURNS: u32 = KEYS / 8u;
var<workgroup> staged: array<vec4<f16>, KEYS * max(K_LD, V_LD)>;
var<workgroup> scores: array<vec4<f32>, ROWS * S_LD>;
var<workgroup> weights: array<vec4<f16>, ROWS * S_LD>;
// Numbers that all invocations agree on.
var<workgroup> notes: array<u32, 4>;

let part = group % parts;
// The last tiles of units come first, because they see the most keys.
let number = min(group / parts, units * tiles - 1u);
let is_there = group / parts == number;
let band = number / (BAND * tiles) * BAND;
let across = min(BAND, units - band);
let unit = band + (number - band * tiles) % across;
let tile = tiles - 1u - (number - band * tiles) / across;
let keys = k_shape[k_ndim - 2u];
let first = tile * ROWS;
let count = min(ROWS, rows - first);
let row = unit * rows + first;

let thread = subgroup_id * 32u + subgroup_invocation_id;
let m_at = subgroup_id / 2u * 32u;
let half = subgroup_id % 2u;
let line = thread / 2u;
let side = thread % 2u;

// The keys that the invocation's own row sees, and the range that all rows of the workgroup see.
let own_row = min(line, count - 1u);
let place = placed(unit, before);
let own = seen(place, (first + own_row) / heads, window);
if thread == 0u {
    let last = (first + count - 1u) / heads;
    let begin = max(part * span, seen(place, first / heads, window).x);
    let end = min(min(part * span + span, keys), seen(place, last, window).y);
    notes = array<u32, 4>(begin, select(begin, end, is_there && begin < end), 0u, 0u);
}
let range = workgroupUniformLoad(&notes);
let begin = range[0];
let end = range[1];
let own_begin = max(own.x, begin);
let own_end = min(own.y, end);

let step_q = q_strides[q_ndim - 1u];
for (var at = thread; at < ROWS * K_LINE; at += SIZE) {
    let i = at % K_LINE * 4u;
    var four = vec4<f16>();
    if at / K_LINE < count && i < WIDTH {
        four = q_halves(q_row(row + at / K_LINE), i, step_q, min(4u, WIDTH - i));
    }
    staged[at / K_LINE * K_LD + at % K_LINE] = four;
}
workgroupBarrier();
var queries: array<coop_mat16x16<f16, A>, 2u * K_MATRICES>;
for (var i = 0u; i < 2u; i += 1u) { //unroll
    for (var step = 0u; step < K_MATRICES; step += 1u) { //unroll
        queries[i * K_MATRICES + step] =
            coopLoadT<coop_mat16x16<f16, A>>(&staged[(m_at + i * 16u) * K_LD + step * 4u], K_LD);
    }
}
var sums: array<coop_mat16x16<f32, C>, 2u * V_MATRICES>;
for (var i = 0u; i < 2u * V_MATRICES; i += 1u) { //unroll
    sums[i] = coop_mat16x16<f32, C>();
}
workgroupBarrier();

let at_k = k_row(unit * keys);
let step_k = vec2(k_strides[k_ndim - 2u], k_strides[k_ndim - 1u]);
let at_v = values_row(unit * keys);
let step_v = vec2(values_strides[values_ndim - 2u], values_strides[values_ndim - 1u]);
let at_mask = mask_row(row + own_row);
let step_mask = mask_strides[mask_ndim - 1u];
// Scores are in units of e until cap and mask are done.
let rate = select(LOG2_E, 1.0, CAPPED || MASKED) * scale;

var top = ABSENT;
var total = 0.0;
// Blocks begin at multiples of KEYS: a row has the same blocks in every tile.
let start = select(end, begin / KEYS * KEYS, begin < end);
var next_keys: array<vec4<f16>, K_FETCHES>;
if begin < end {
    next_keys = some_keys(thread, at_k, step_k, start, end);
}
for (var base = start; base < end; base += KEYS) {
    for (var n = 0u; n < K_FETCHES; n += 1u) { //unroll
        let at = thread + n * SIZE;
        staged[at / K_LINE * K_LD + at % K_LINE] = next_keys[n];
    }
    workgroupBarrier();
    let next_values = some_values(thread, at_v, step_v, base, begin, end);
    var products: array<coop_mat16x16<f32, C>, 4>;
    for (var i = 0u; i < 4u; i += 1u) { //unroll
        products[i] = coop_mat16x16<f32, C>();
    }
    for (var step = 0u; step < K_MATRICES; step += 1u) { //unroll
        for (var j = 0u; j < 2u; j += 1u) { //unroll
            let columns = coopLoad<coop_mat16x16<f16, B>>(
                &staged[(half * 32u + j * 16u) * K_LD + step * 4u], K_LD);
            for (var i = 0u; i < 2u; i += 1u) { //unroll
                products[i * 2u + j] =
                    coopMultiplyAdd(queries[i * K_MATRICES + step], columns, products[i * 2u + j]);
            }
        }
    }
    for (var i = 0u; i < 2u; i += 1u) { //unroll
        for (var j = 0u; j < 2u; j += 1u) { //unroll
            let product = products[i * 2u + j];
            let to = &scores[(m_at + i * 16u) * S_LD + half * 8u + j * 4u];
            coopStoreT(product, to, S_LD);
        }
    }
    workgroupBarrier();

    for (var n = 0u; n < V_FETCHES; n += 1u) { //unroll
        let at = thread + n * SIZE;
        staged[at / V_LINE * V_LD + at % V_LINE] = next_values[n];
    }
    var s4: array<vec4<f32>, TURNS>;
    var sizes = vec4<u32>();
    for (var n = 0u; n < TURNS; n += 1u) { //unroll
        s4[n] = rate * scores[line * S_LD + 2u * n + side];
        sizes = max(sizes, bitcast<vec4<u32>>(s4[n]) & vec4(0x7fffffffu));
    }
    // A block that the row sees as a whole, with scores below 2^127, needs no more.
    let is_plain = all(sizes < vec4(0x7f000000u)) & (base >= own_begin) & (base + KEYS <= own_end);
    if CAPPED || MASKED || !is_plain {
        for (var n = 0u; n < TURNS; n += 1u) { //unroll
            let i = base + 8u * n + 4u * side;
            var s = s4[n];
            if CAPPED {
                s = capped(s, softcap);
            }
            if MASKED {
                let last = (keys - 1u) / 4u * 4u;
                s += mask_get(at_mask, min(i, last), step_mask, min(4u, keys - min(i, last)));
            }
            s = vec4(marked(s.x), marked(s.y), marked(s.z), marked(s.w));
            if CAPPED || MASKED {
                s = vec4(of_two(s.x), of_two(s.y), of_two(s.z), of_two(s.w));
            }
            let key = i + vec4(0u, 1u, 2u, 3u);
            let counts = (key >= vec4(own_begin)) & (key < vec4(own_end));
            s4[n] = select(vec4(ABSENT), s, counts);
        }
    }
    var most = vec4(ABSENT);
    for (var n = 0u; n < TURNS; n += 1u) { //unroll
        most = max(most, s4[n]);
    }
    var best = max(max(most.x, most.y), max(most.z, most.w));
    best = max(best, subgroupShuffleXor(best, 1u));
    let before_top = top;
    if best > top + ROOM {
        top = best - LIFT;
    }
    let factor = power(before_top, top);
    total *= factor;
    // Far above ABSENT, which then has no weight.
    let from_top = max(top, -MOST);
    for (var n = 0u; n < TURNS; n += 1u) { //unroll
        let weight = exp2(s4[n] - from_top);
        weights[line * S_LD + 2u * n + side] = vec4<f16>(weight);
        total += weight.x + weight.y + weight.z + weight.w;
    }
    // Sums are 0 before the first score.
    let grows = subgroupAny(top > before_top && before_top > ABSENT);
    if subgroup_invocation_id == 0u {
        notes[subgroup_id] = u32(grows);
    }
    let grown = workgroupUniformLoad(&notes);
    if (grown[0] | grown[1] | grown[2] | grown[3]) != 0u {
        for (var turn = 0u; turn < 2u; turn += 1u) {
            if half == turn {
                for (var i = 0u; i < 2u; i += 1u) { //unroll
                    for (var j = 0u; j < V_MATRICES; j += 1u) { //unroll
                        let sum = sums[i * V_MATRICES + j];
                        let to = &scores[(m_at + i * 16u) * S_LD + j * 4u];
                        coopStoreT(sum, to, S_LD);
                    }
                }
            }
            workgroupBarrier();
            for (var n = 0u; n < 2u * V_MATRICES; n += 1u) {
                scores[line * S_LD + 2u * n + side] *= factor;
            }
            workgroupBarrier();
            if half == turn {
                for (var i = 0u; i < 2u; i += 1u) { //unroll
                    for (var j = 0u; j < V_MATRICES; j += 1u) { //unroll
                        sums[i * V_MATRICES + j] = coopLoadT<coop_mat16x16<f32, C>>(
                            &scores[(m_at + i * 16u) * S_LD + j * 4u], S_LD);
                    }
                }
            }
            workgroupBarrier();
        }
    }

    next_keys = some_keys(thread, at_k, step_k, base + KEYS, end);
    for (var step = 0u; step < KEYS / 16u; step += 1u) {
        var lines: array<coop_mat16x16<f16, A>, 2>;
        for (var i = 0u; i < 2u; i += 1u) { //unroll
            lines[i] = coopLoadT<coop_mat16x16<f16, A>>(
                &weights[(m_at + i * 16u) * S_LD + step * 4u], S_LD);
        }
        for (var j = 0u; j < V_MATRICES; j += 1u) { //unroll
            let columns = coopLoadT<coop_mat16x16<f16, B>>(
                &staged[step * 16u * V_LD + (half * V_MATRICES + j) * 4u], V_LD);
            for (var i = 0u; i < 2u; i += 1u) { //unroll
                sums[i * V_MATRICES + j] =
                    coopMultiplyAdd(lines[i], columns, sums[i * V_MATRICES + j]);
            }
        }
    }
    workgroupBarrier();
}

total += subgroupShuffleXor(total, 1u);
var factor = 1.0;
if SINKS {
    let sink = of_two(marked(sinks_get(sinks_row(row + own_row), 0u, 1u, 1u).x));
    let last = max(top, sink);
    factor = power(top, last);
    total = total * factor + power(sink, last);
    top = last;
}
let step_y = y_strides[y_ndim - 1u];
for (var turn = 0u; turn < 2u; turn += 1u) {
    if half == turn {
        for (var i = 0u; i < 2u; i += 1u) { //unroll
            for (var j = 0u; j < V_MATRICES; j += 1u) { //unroll
                let sum = sums[i * V_MATRICES + j];
                let to = &scores[(m_at + i * 16u) * S_LD + j * 4u];
                coopStoreT(sum, to, S_LD);
            }
        }
    }
    workgroupBarrier();
    for (var n = 0u; n < 2u * V_MATRICES; n += 1u) {
        let i = 4u * (turn * 4u * V_MATRICES + 2u * n + side);
        if is_there && line < count && i < V_WIDTH {
            let sum = factor * scores[line * S_LD + 2u * n + side];
            if PARTS {
                y_put(y_row((row + line) * parts + part), i, step_y, 4u, sum);
            } else {
                let y4 = quotient(sum, top, total, row);
                y_put(y_row(row + line), i, step_y, min(4u, V_WIDTH - i), y4);
            }
        }
    }
    workgroupBarrier();
}
if PARTS {
    if is_there && line < count && side == 0u {
        let i = (V_WIDTH + 3u) / 4u * 4u;
        let at_y = y_row((row + line) * parts + part);
        y_put(at_y, i, step_y, 4u, vec4(of_e(top), total, 0.0, 0.0));
    }
}
