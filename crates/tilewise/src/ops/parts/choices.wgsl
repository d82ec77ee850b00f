// Functions of which a kernel takes one, under the first word of its name: `apply` of elementwise
// operations, `keep` of reductions, `moved` of sorting, `absent` of gathering, `before` of scans,
// `placed` of positions. A position on the device is bounded: rows count up from it.

fn apply_copy(x: V, z: V, value: E) -> V { return x; }
fn apply_fill(x: V, z: V, value: E) -> V { return V(value); }
fn apply_minus(x: V, z: V, value: E) -> V { return x - V(value); }

fn apply_scale(x: V, z: V, value: E) -> V { return x * value; }
fn apply_neg(x: V, z: V, value: E) -> V { return -x; }
fn apply_abs(x: V, z: V, value: E) -> V { return abs(x); }
fn apply_exp(x: V, z: V, value: E) -> V { return select(exp(x), x, is_nan(x)); }
fn apply_log(x: V, z: V, value: E) -> V {
    return select(log(x), bitcast<V>(vec4(0xff800000u) | bitcast<vec4<u32>>(x)), x == V());
}
fn apply_sqrt(x: V, z: V, value: E) -> V { return sqrt(x); }
fn apply_rsqrt(x: V, z: V, value: E) -> V { return inverseSqrt(x); }
fn apply_tanh(x: V, z: V, value: E) -> V { return hyperbolic(x); }
fn apply_sigmoid(x: V, z: V, value: E) -> V { return sigmoid(x); }
fn apply_relu(x: V, z: V, value: E) -> V { return select(select(x, V(), x < V()), x, is_nan(x)); }
fn apply_gelu(x: V, z: V, value: E) -> V { return gelu(x); }
fn apply_gelu_erf(x: V, z: V, value: E) -> V { return gelu_erf(x); }
fn apply_silu(x: V, z: V, value: E) -> V { return silu(x); }
fn apply_sin(x: V, z: V, value: E) -> V { return sin(turned(x)); }
fn apply_cos(x: V, z: V, value: E) -> V { return cos(turned(x)); }
fn apply_square(x: V, z: V, value: E) -> V { return x * x; }
fn apply_recip(x: V, z: V, value: E) -> V { return 1.0 / x; }

fn apply_add(x: V, z: V, value: E) -> V { return x + z; }
fn apply_sub(x: V, z: V, value: E) -> V { return x - z; }
fn apply_mul(x: V, z: V, value: E) -> V { return x * z; }
fn apply_div(x: V, z: V, value: E) -> V { return x / z; }
fn apply_max(x: V, z: V, value: E) -> V {
    return select(select(z, x, x > z), x + z, is_nan(x) | is_nan(z));
}
fn apply_min(x: V, z: V, value: E) -> V {
    return select(select(z, x, x < z), x + z, is_nan(x) | is_nan(z));
}
fn apply_pow(x: V, z: V, value: E) -> V { return power(x, z); }
fn apply_silu_mul(x: V, z: V, value: E) -> V { return silu(x) * z; }
fn apply_gelu_mul(x: V, z: V, value: E) -> V { return gelu(x) * z; }
fn apply_swiglu_oai(x: V, z: V, value: E) -> V { return swiglu_oai(x, z, ALPHA, value); }
fn apply_silu_backward(x: V, z: V, value: E) -> V {
    return x * (sigmoid(z) * (1.0 + clamp(z, V(-88.0), V(88.0)) * sigmoid(-z)));
}

fn keep_sum(at: u32, part: Part, factor: f32) { y_store(at, part * factor); }
fn keep_number(at: u32, part: Part, factor: f32) { y_store(at, number(part.x)); }
fn keep_place(at: u32, part: Part, factor: f32) { y[at] = part.y; }
fn keep_part(at: u32, part: Part, factor: f32) { y[at] = part.x; y[at + 1u] = part.y; }

fn moved_key(key: u32, i: u32, at: u32) -> u32 { return key; }
fn moved_index(key: u32, i: u32, at: u32) -> u32 { return i; }
fn moved_payload(key: u32, i: u32, at: u32) -> u32 { return payload[at]; }

fn absent_float(bits: u32) -> V { return V(bitcast<f32>(bits)); }
fn absent_integer(bits: u32) -> V { return V(bits); }

fn before_zero(segment: u32) -> T { return T(); }
fn before_base(segment: u32) -> T { return base[segment]; }

fn placed_number(row: u32, number: u32) -> u32 { return number; }
fn placed_tensor(row: u32, number: u32) -> u32 {
    return min(position[position_row(row)], 0x7fffffffu) + number;
}
