// The header of max, arg-max and min: the largest element, as an integer of the same order, and its
// first place. NaN is larger than all numbers; the two zeros are equal. FLIP is 0, or the sign's
// bit for min, which takes the largest of the numbers with the other sign.

alias Part = vec2<u32>;

fn nothing() -> Part {
    return vec2(0u, 0xffffffffu);
}

fn ordered(v: f32) -> u32 {
    let bits = bitcast<u32>(v) ^ FLIP;
    let magnitude = bits & 0x7fffffffu;
    if magnitude > 0x7f800000u {
        return 0xffffffffu;
    }
    return select(0x80000000u + magnitude, 0x80000000u - magnitude, bits != magnitude);
}

// The number of an order; one NaN for all NaNs.
fn number(order: u32) -> f32 {
    let negative = (0x80000000u - order) | 0x80000000u;
    let bits = select(order - 0x80000000u, negative, order < 0x80000000u);
    return bitcast<f32>(bits ^ FLIP);
}

fn joined(a: Part, b: Part) -> Part {
    let first = a.x > b.x || (a.x == b.x && a.y < b.y);
    return select(b, a, first);
}

fn block(v: vec4<f32>, first: u32, count: u32) -> Part {
    var largest = nothing();
    for (var i = 0u; i < count; i++) {
        largest = joined(largest, vec2(ordered(v[i]), first + i));
    }
    return largest;
}
