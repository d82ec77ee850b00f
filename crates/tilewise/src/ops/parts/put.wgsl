// Writes four elements of a row, as access.rs says: to a tensor in fours, of integers, in words, of
// f32, in halves of words.

fn NAME_put(at: u32, i: u32, step: u32, count: u32, v: V) {
    NAME_store4(at + i, v);
}

fn NAME_put(at: u32, i: u32, step: u32, count: u32, v: V) {
    if 0u < count { NAME[at + (i + 0u) * step] = Y(v.x); }
    if 1u < count { NAME[at + (i + 1u) * step] = Y(v.y); }
    if 2u < count { NAME[at + (i + 2u) * step] = Y(v.z); }
    if 3u < count { NAME[at + (i + 3u) * step] = Y(v.w); }
}

fn NAME_put(at: u32, i: u32, step: u32, count: u32, v: V) {
    if count == 4u { NAME_store4(at + i, v); }
    if count == 2u { NAME_store2(at + i, v.xy); }
}

fn NAME_put(at: u32, i: u32, step: u32, count: u32, v: V) {
    if step == 1u && count == 4u { NAME_store4(at + i, v); return; }
    if 0u < count { NAME_store(at + (i + 0u) * step, v.x); }
    if 1u < count { NAME_store(at + (i + 1u) * step, v.y); }
    if 2u < count { NAME_store(at + (i + 2u) * step, v.z); }
    if 3u < count { NAME_store(at + (i + 3u) * step, v.w); }
}

fn NAME_put(at: u32, i: u32, step: u32, count: u32, v: V) {
    if step == 1u && count == 4u && (at + i) % 2u == 0u { NAME_store4(at + i, v); return; }
    if 0u < count { NAME_store(at + (i + 0u) * step, v.x); }
    if 1u < count { NAME_store(at + (i + 1u) * step, v.y); }
    if 2u < count { NAME_store(at + (i + 2u) * step, v.z); }
    if 3u < count { NAME_store(at + (i + 3u) * step, v.w); }
}
