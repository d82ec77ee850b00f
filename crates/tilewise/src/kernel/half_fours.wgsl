// A tensor of 16-bit floats in pairs of words, one pair at a time.

fn NAME_load4(tilewise_i: u32) -> vec4<f32> {
    let tilewise_words = NAME[(tilewise_i + tilewise_call.NAME_offset) / 4u];
    return vec4<f32>(
        tilewise_widen_DTYPE(tilewise_words.x), tilewise_widen_DTYPE(tilewise_words.y));
}

fn NAME_store4(tilewise_i: u32, tilewise_x: vec4<f32>) {
    NAME[(tilewise_i + tilewise_call.NAME_offset) / 4u] = vec2<u32>(
        tilewise_narrow_DTYPE(tilewise_x.xy), tilewise_narrow_DTYPE(tilewise_x.zw));
}
