// A tensor of 16-bit floats as halves of words, one or two elements at a time.

fn NAME_load(tilewise_i: u32) -> f32 {
    let tilewise_at = tilewise_i + tilewise_call.NAME_offset;
    return tilewise_widen_DTYPE(NAME[tilewise_at / 2u])[tilewise_at % 2u];
}
fn NAME_load2(tilewise_i: u32) -> vec2<f32> {
    let tilewise_at = tilewise_i + tilewise_call.NAME_offset;
    var tilewise_word = NAME[tilewise_at / 2u];
    if tilewise_at % 2u == 1u {
        tilewise_word = (tilewise_word >> 16u) | (NAME[tilewise_at / 2u + 1u] << 16u);
    }
    return tilewise_widen_DTYPE(tilewise_word);
}

fn NAME_store2(tilewise_i: u32, tilewise_x: vec2<f32>) {
    let tilewise_at = tilewise_i + tilewise_call.NAME_offset;
    NAME[tilewise_at / 2u] = tilewise_narrow_DTYPE(tilewise_x);
}
