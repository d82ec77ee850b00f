// Reads four elements of a row, as access.rs says: from a tensor in fours, of integers, of other
// floats. The last element is read in place of those beyond `count`, and these become 0. FXC takes
// too long to compile a loop that indexes a vector. The last two are for f16, and read f16: from a
// tensor in fours, and another.

fn NAME_get(at: u32, i: u32, step: u32, count: u32) -> V {
    return V(NAME_load4(at + i));
}

fn NAME_get(at: u32, i: u32, step: u32, count: u32) -> V {
    let last = count - 1u;
    return select(V(), V(
        E(NAME[at + (i + 0u) * step]),
        E(NAME[at + (i + min(1u, last)) * step]),
        E(NAME[at + (i + min(2u, last)) * step]),
        E(NAME[at + (i + last) * step])
    ), vec4(0u, 1u, 2u, 3u) < vec4(count));
}

fn NAME_get(at: u32, i: u32, step: u32, count: u32) -> V {
    if step == 1u && count == 4u { return NAME_load4(at + i); }
    let last = count - 1u;
    return select(V(), V(
        NAME_load(at + (i + 0u) * step),
        NAME_load(at + (i + min(1u, last)) * step),
        NAME_load(at + (i + min(2u, last)) * step),
        NAME_load(at + (i + last) * step)
    ), vec4(0u, 1u, 2u, 3u) < vec4(count));
}

fn NAME_halves(at: u32, i: u32, step: u32, count: u32) -> vec4<f16> {
    return vec4<f16>(NAME_load4(at + i));
}

fn NAME_halves(at: u32, i: u32, step: u32, count: u32) -> vec4<f16> {
    return vec4<f16>(NAME_get(at, i, step, count));
}
