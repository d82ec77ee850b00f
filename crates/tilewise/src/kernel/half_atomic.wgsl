// An output of 16-bit floats as halves of words that several invocations may share. Nobody else
// changes the half that NAME_store writes, so it stays as it was loaded. The other half may change
// at any time, and is left alone.

fn NAME_load(tilewise_i: u32) -> f32 {
    let tilewise_at = tilewise_i + tilewise_call.NAME_offset;
    return tilewise_widen_DTYPE(atomicLoad(&NAME[tilewise_at / 2u]))[tilewise_at % 2u];
}
fn NAME_load2(tilewise_i: u32) -> vec2<f32> {
    let tilewise_at = tilewise_i + tilewise_call.NAME_offset;
    var tilewise_word = atomicLoad(&NAME[tilewise_at / 2u]);
    if tilewise_at % 2u == 1u {
        tilewise_word = (tilewise_word >> 16u) | (atomicLoad(&NAME[tilewise_at / 2u + 1u]) << 16u);
    }
    return tilewise_widen_DTYPE(tilewise_word);
}

fn NAME_store(tilewise_i: u32, tilewise_x: f32) {
    let tilewise_at = tilewise_i + tilewise_call.NAME_offset;
    let tilewise_own = 0xffffu << (tilewise_at % 2u * 16u);
    let tilewise_put = tilewise_narrow_DTYPE(vec2<f32>(tilewise_x, tilewise_x)) & tilewise_own;
    let tilewise_was = atomicLoad(&NAME[tilewise_at / 2u]) & tilewise_own;
    atomicXor(&NAME[tilewise_at / 2u], tilewise_was ^ tilewise_put);
}
fn NAME_store2(tilewise_i: u32, tilewise_x: vec2<f32>) {
    let tilewise_at = tilewise_i + tilewise_call.NAME_offset;
    atomicStore(&NAME[tilewise_at / 2u], tilewise_narrow_DTYPE(tilewise_x));
}
