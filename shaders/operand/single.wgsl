// Four elements by single loads: for loaders (and stores that read C back) which any alignment
// suits.
// needs: x_load
// offers: x_decode4 x_fetch4 x_load4 x_load4_masked x_raw4

fn x_load4(i: u32) -> vec4<f32> {
    return vec4<f32>(x_load(i), x_load(i + 1u), x_load(i + 2u), x_load(i + 3u));
}

// Elements i .. i+3; those from n on are 0 and never read.
fn x_load4_masked(i: u32, n: u32) -> vec4<f32> {
    var v = vec4<f32>();
    if n > 0u { v.x = x_load(i); }
    if n > 1u { v.y = x_load(i + 1u); }
    if n > 2u { v.z = x_load(i + 2u); }
    if n > 3u { v.w = x_load(i + 3u); }
    return v;
}

alias x_raw4 = vec4<f32>;

// Elements i .. i+3, of which n exist (or more than four), one at least: the last of them stands
// for those beyond it.
fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    return vec4<f32>(x_load(i), x_load(i + min(n - 1u, 1u)), x_load(i + min(n - 1u, 2u)),
        x_load(i + min(n - 1u, 3u)));
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    return raw;
}
