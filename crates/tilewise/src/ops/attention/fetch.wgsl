// The header of attention on matrix units: scores as exponents of 2, and blocks of keys and of
// values on their way through registers.

const LOG2_E = 1.44269504;
const LN_2 = 0.693147181;

// A score with its mark as an exponent of 2, and the other way round. Scores far from 2^127 are
// finite in both units.
fn of_two(s: f32) -> f32 {
    return select(LOG2_E * clamp(s, -2e38, 2e38), s, abs(s) > MOST);
}
fn of_e(s: f32) -> f32 {
    return select(LN_2 * s, s, abs(s) > MOST);
}

// 2^(s − top).
fn power(s: f32, top: f32) -> f32 {
    return exp2(max(s - top, -150.0));
}

// Matrices along a key, and those of a subgroup along a value.
const K_MATRICES: u32 = (WIDTH + 15u) / 16u;
const V_MATRICES: u32 = (V_WIDTH + 31u) / 32u;
// Vectors of four in a line, with zeros behind its end, and from one line to the next in workgroup
// memory: the lines of a matrix then lie in different banks.
const K_LINE: u32 = 4u * K_MATRICES;
const V_LINE: u32 = 8u * V_MATRICES;
const K_LD: u32 = K_LINE + 2u;
const V_LD: u32 = V_LINE + 2u;
// Vectors of a block for each invocation.
const K_FETCHES: u32 = K_LINE * KEYS / SIZE;
const V_FETCHES: u32 = V_LINE * KEYS / SIZE;

// An invocation's share of the keys from `base` on. The last key that rows of the workgroup see
// stands for those behind it.
fn some_keys(
    thread: u32, at: u32, step: vec2<u32>, base: u32, end: u32
) -> array<vec4<f16>, K_FETCHES> {
    var some: array<vec4<f16>, K_FETCHES>;
    for (var n = 0u; n < K_FETCHES; n += 1u) { //unroll
        let place = thread + n * SIZE;
        let key = min(base + place / K_LINE, end - 1u);
        let i = place % K_LINE * 4u;
        some[n] = vec4<f16>();
        if WIDTH % 16u == 0u || i < WIDTH {
            some[n] = k_halves(at + key * step.x, i, step.y, min(4u, WIDTH - i));
        }
    }
    return some;
}

// An invocation's share of the values from `base` on. Others stand for values that no row sees,
// which may hold NaN: a weight of 0 does not make 0 of it.
fn some_values(
    thread: u32, at: u32, step: vec2<u32>, base: u32, begin: u32, end: u32
) -> array<vec4<f16>, V_FETCHES> {
    var some: array<vec4<f16>, V_FETCHES>;
    for (var n = 0u; n < V_FETCHES; n += 1u) { //unroll
        let place = thread + n * SIZE;
        let key = clamp(base + place / V_LINE, begin, end - 1u);
        let i = place % V_LINE * 4u;
        some[n] = vec4<f16>();
        if V_WIDTH % 32u == 0u || i < V_WIDTH {
            some[n] = values_halves(at + key * step.x, i, step.y, min(4u, V_WIDTH - i));
        }
    }
    return some;
}
