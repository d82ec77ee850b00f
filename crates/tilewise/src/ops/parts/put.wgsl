// Writes four elements of a row, as access.rs says: to a tensor in fours, of integers, in words, of
// f32, in halves of words.

fn y_put(at: u32, i: u32, step: u32, count: u32, v: V) {
    y_store4(at + i, v);
}

fn y_put(at: u32, i: u32, step: u32, count: u32, v: V) {
    if 0u < count { y[at + (i + 0u) * step] = Y(v.x); }
    if 1u < count { y[at + (i + 1u) * step] = Y(v.y); }
    if 2u < count { y[at + (i + 2u) * step] = Y(v.z); }
    if 3u < count { y[at + (i + 3u) * step] = Y(v.w); }
}

fn y_put(at: u32, i: u32, step: u32, count: u32, v: V) {
    if count == 4u { y_store4(at + i, v); }
    if count == 2u { y_store2(at + i, v.xy); }
}

fn y_put(at: u32, i: u32, step: u32, count: u32, v: V) {
    if step == 1u && count == 4u { y_store4(at + i, v); return; }
    if 0u < count { y_store(at + (i + 0u) * step, v.x); }
    if 1u < count { y_store(at + (i + 1u) * step, v.y); }
    if 2u < count { y_store(at + (i + 2u) * step, v.z); }
    if 3u < count { y_store(at + (i + 3u) * step, v.w); }
}

fn y_put(at: u32, i: u32, step: u32, count: u32, v: V) {
    if step == 1u && count == 4u && (at + i) % 2u == 0u { y_store4(at + i, v); return; }
    if 0u < count { y_store(at + (i + 0u) * step, v.x); }
    if 1u < count { y_store(at + (i + 1u) * step, v.y); }
    if 2u < count { y_store(at + (i + 2u) * step, v.z); }
    if 3u < count { y_store(at + (i + 3u) * step, v.w); }
}
