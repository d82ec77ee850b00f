// The body of a router's choice: LANES invocations share a token, and a workgroup has ROWS of the
// `rows` tokens. An expert's rank is the number of experts that come before it. The invocations
// look at LANES experts at a time. Experts of ranks below k are chosen. If there are several GROUPS
// of experts, those of the first TOPK_GROUP groups come first.
let lane = lane_of(local_index, LANES);
let first = local_index - lane;
let row = group * ROWS + row_of(local_index, LANES);
let last = logits_ndim - 1u;
let logit = vec2(logits_row(row), logits_strides[last]);
let all = logits_shape[last];
let length = select(0u, all, row < rows);

// The largest logit and the sum of exponentials of all experts, if these are needed.
var top = 0u;
var divisor = 1.0;
if OF_ALL {
    var most = 0u;
    for (var i = lane; i < length; i += LANES) {
        most = max(most, ordered(logits_load(logit.x + i * logit.y)));
    }
    top = whole(vec2(most, lane), local_index, LANES).x;
    var part = 0.0;
    for (var i = lane; i < length; i += LANES) {
        part += score(logits_load(logit.x + i * logit.y), top);
    }
    divisor = max(total(part, local_index), 1.0);
}

let group_at = row_of(local_index, LANES) * GROUPS;
if GROUPS > 1u {
    for (var i = lane; i < GROUPS; i += LANES) {
        groups[group_at + i] = group_key(i, length, logit, bias_strides[0], top, divisor);
    }
    workgroupBarrier();
}

let weight = vec2(weights_row(row), weights_strides[last]);
var most = 0u;
for (var start = 0u; start < all; start += LANES) {
    let own = start + lane;
    let own_score = key(own, length, logit, bias_strides[0], top, divisor);
    let own_key = key_within(own_score, own, length, group_at);
    var rank = 0u;
    for (var begin = 0u; begin < all; begin += LANES) {
        let i = begin + lane;
        let next = key(i, length, logit, bias_strides[0], top, divisor);
        keys[local_index] = key_within(next, i, length, group_at);
        workgroupBarrier();
        for (var i = 0u; i < LANES; i += 4u) {
            for (var j = 0u; j < 4u; j += 1u) { //unroll
                let least = own_key - select(0u, 1u, begin + i + j < own);
                rank += select(0u, 1u, keys[first + i + j] > least);
            }
        }
        workgroupBarrier();
    }
    if own < length && rank < k {
        let taken = logits_load(logit.x + own * logit.y);
        most = max(most, ordered(taken));
        weights[weight.x + rank * weight.y] = taken;
        experts[experts_row(row) + rank * experts_strides[last]] = own;
    }
}
storageBarrier();

// The largest logit of the chosen experts.
let largest = whole(vec2(most, lane), local_index, LANES).x;
let chosen = select(0u, k, row < rows);
var part = 0.0;
for (var rank = lane; rank < chosen; rank += LANES) {
    let at = weight.x + rank * weight.y;
    weights[at] = score(weights[at], select(top, largest, NORMALIZE));
    part += weights[at];
}
var bad = SOFTMAX && max(top, largest) >= INFINITE;
if NORMALIZE {
    let sum = total(part, local_index);
    bad = bad || (!SOFTMAX && (largest > INFINITE || sum == 0.0));
    // In a softmax the largest logit adds 1, unless no logit counts.
    divisor = select(sum, max(sum, 1.0), SOFTMAX);
}
for (var rank = lane; rank < chosen; rank += LANES) {
    let at = weight.x + rank * weight.y;
    // NaN, made of a number that is not constant.
    let nan = bitcast<f32>(0x7fc00000u | min(row, 1u));
    weights[at] = select(weights[at] / divisor * scale, nan, bad);
}
