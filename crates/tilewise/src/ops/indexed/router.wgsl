// The header of a router's choice: scores of experts. Logits are compared by their order, as in
// largest.wgsl. These are the orders of −∞, 0 and +∞; that of NaN is above them.
const NONE = 0x00800000u;
const ZERO = 0x80000000u;
const INFINITE = 0xff800000u;

var<workgroup> keys: array<u32, SIZE>;
// For each row, the keys by which groups of experts are ranked.
var<workgroup> groups: array<u32, ROWS * GROUPS>;

// e^(logit − largest), which vanishes in f32 from −104 on; 0 for −∞.
fn exponential(logit: f32, largest: u32) -> f32 {
    if ordered(logit) == NONE {
        return 0.0;
    }
    return exp(max(logit - number(largest), -104.0));
}

// The score of a logit before any division. For a softmax it is relative to the largest logit. So
// it is for a sigmoid, if a negative largest logit is given: all scores may vanish otherwise.
fn score(logit: f32, largest: u32) -> f32 {
    if SOFTMAX {
        return exponential(logit, largest);
    }
    if largest > NONE && largest < ZERO {
        return exponential(logit, largest) / (1.0 + exp(max(logit, -104.0)));
    }
    return sigmoid(vec4(logit)).x;
}

// The key by which experts are ranked: the order of the logit, or of the sum of score and bias. It
// is 0, below all others, if there is no expert. `at` is the place of a token's first logit, and
// the step from one logit to the next.
fn key(i: u32, length: u32, at: vec2<u32>, bias_step: u32, top: u32, divisor: f32) -> u32 {
    if i >= length {
        return 0u;
    }
    let logit = logits_load(at.x + i * at.y);
    let order = ordered(logit);
    if !BIASED {
        return order;
    }
    let bad = select(order > INFINITE, top >= INFINITE, SOFTMAX);
    let sum = score(logit, top) / divisor + bias_load(i * bias_step);
    return select(ordered(sum), 0xffffffffu, bad);
}

// The key by which groups of experts are ranked: their largest key, or, if there is a bias, the
// order of the sum of the two largest. Arguments are those of `key`.
fn group_key(own: u32, length: u32, at: vec2<u32>, bias_step: u32, top: u32, divisor: f32) -> u32 {
    let size = length / GROUPS;
    var first = 0u;
    var second = 0u;
    for (var i = own * size; i < (own + 1u) * size; i += 1u) {
        let other = key(i, length, at, bias_step, top, divisor);
        second = max(second, min(first, other));
        first = max(first, other);
    }
    // Arithmetic with infinities is left to the device. If there is no second expert, its number
    // is −0.
    if !BIASED || first >= INFINITE {
        return first;
    }
    return select(ordered(number(first) + number(second)), NONE, second == NONE);
}

// The key of an expert among those of the chosen groups; experts of other groups come behind all
// of these. `first` is the place of the row's first group.
fn key_within(key: u32, i: u32, length: u32, first: u32) -> u32 {
    if GROUPS == 1u || i >= length {
        return key;
    }
    let own = i / (length / GROUPS);
    let own_key = groups[first + own];
    var rank = 0u;
    for (var other = 0u; other < GROUPS; other += 1u) {
        let least = own_key - select(0u, 1u, other < own);
        rank += select(0u, 1u, groups[first + other] > least);
    }
    return select(1u, key, rank < TOPK_GROUP);
}
