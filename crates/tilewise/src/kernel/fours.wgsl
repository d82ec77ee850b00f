// A tensor in vectors of four f32 or f16, one at a time. They are read in their own type.

fn NAME_load4(tilewise_i: u32) -> ELEMENT {
    return NAME[(tilewise_i + tilewise_call.NAME_offset) / 4u];
}

fn NAME_store4(tilewise_i: u32, tilewise_x: vec4<f32>) {
    NAME[(tilewise_i + tilewise_call.NAME_offset) / 4u] = ELEMENT(tilewise_x);
}
