// Operand in f16 with the extension, one element at a time: any alignment.

const X_BINDING: u32 = 1u; //param

@group(0) @binding(X_BINDING) var<storage, read> x_data: array<f16>;

fn x_load(i: u32) -> f32 {
    return f32(x_data[i]);
}

fn x_load4(i: u32) -> vec4<f32> {
    return vec4<f32>(vec4<f16>(x_data[i], x_data[i + 1u], x_data[i + 2u], x_data[i + 3u]));
}

// Elements i .. i+3; those from n on are 0 and never read.
fn x_load4_part(i: u32, n: u32) -> vec4<f32> {
    var v = vec4<f32>();
    if n > 0u { v.x = f32(x_data[i]); }
    if n > 1u { v.y = f32(x_data[i + 1u]); }
    if n > 2u { v.z = f32(x_data[i + 2u]); }
    if n > 3u { v.w = f32(x_data[i + 3u]); }
    return v;
}
