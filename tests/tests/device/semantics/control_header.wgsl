fn note(count: ptr<function, u32>) -> bool {
    *count += 1u;
    return *count != 0u;
}

fn early(x: u32) -> u32 {
    for (var i = 0u; i < 10u; i += 1u) {
        if (i * i > x) {
            return i;
        }
        if (x == 7u) {
            return 70u;
        }
    }
    return 1000u;
}
