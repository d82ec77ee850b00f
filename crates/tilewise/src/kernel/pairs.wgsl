// Four elements of a tensor as two pairs.

fn NAME_load4(tilewise_i: u32) -> vec4<f32> {
    return vec4<f32>(NAME_load2(tilewise_i), NAME_load2(tilewise_i + 2u));
}

fn NAME_store4(tilewise_i: u32, tilewise_x: vec4<f32>) {
    NAME_store2(tilewise_i, tilewise_x.xy);
    NAME_store2(tilewise_i + 2u, tilewise_x.zw);
}
