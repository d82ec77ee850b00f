// A tensor of f32, one or two elements at a time.

fn NAME_load(tilewise_i: u32) -> f32 {
    let tilewise_at = tilewise_i + tilewise_call.NAME_offset;
    return NAME[tilewise_at];
}
fn NAME_load2(tilewise_i: u32) -> vec2<f32> {
    let tilewise_at = tilewise_i + tilewise_call.NAME_offset;
    return vec2<f32>(NAME[tilewise_at], NAME[tilewise_at + 1u]);
}

fn NAME_store(tilewise_i: u32, tilewise_x: f32) {
    let tilewise_at = tilewise_i + tilewise_call.NAME_offset;
    NAME[tilewise_at] = tilewise_x;
}
fn NAME_store2(tilewise_i: u32, tilewise_x: vec2<f32>) {
    let tilewise_at = tilewise_i + tilewise_call.NAME_offset;
    NAME[tilewise_at] = tilewise_x.x;
    NAME[tilewise_at + 1u] = tilewise_x.y;
}
