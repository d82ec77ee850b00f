// The header of rotary embeddings: the first and the second elements of up to four pairs of a row
// of `x`, from pair i on. `step` is the distance between elements of the row.

struct Pairs {
    a: V,
    b: V,
}

fn pairs(row: u32, i: u32, step: u32, count: u32) -> Pairs {
    if !INTERLEAVED {
        let first = x_get(x_row(2u * row), i, step, count);
        return Pairs(first, x_get(x_row(2u * row + 1u), i, step, count));
    }
    let low = min(4u, 2u * count);
    let high = 2u * count - low;
    let first = x_get(x_row(row), 2u * i, step, low);
    var second = V();
    if high > 0u {
        second = x_get(x_row(row), 2u * i + 4u, step, high);
    }
    return Pairs(vec4(first.xz, second.xz), vec4(first.yw, second.yw));
}
