// Operand in a 16-bit type, f16 or bf16, as halves of words, four at a time: offset, strides and the contiguous extent are
// multiples of 4. It serves f16 where the extension is there too: a driver was seen to take vectors of f16 apart, element by element, on their way
// through a loop (benches/record/NOTES.md).
// needs: widen
// provides: X_BF16 X_BINDING x_data x_decode4 x_fetch4 x_load x_load4 x_load4_part x_raw4

const X_BINDING: u32 = 1u; //param
const X_BF16: bool = false; //param

@group(0) @binding(X_BINDING) var<storage, read> x_data: array<vec2<u32>>;

fn x_load(i: u32) -> f32 {
    return widen(x_data[i / 4u][i / 2u % 2u], X_BF16)[i % 2u];
}

alias x_raw4 = vec2<u32>;

fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    return x_data[i / 4u];
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    return vec4<f32>(widen(raw.x, X_BF16), widen(raw.y, X_BF16));
}

fn x_load4(i: u32) -> vec4<f32> {
    return x_decode4(x_data[i / 4u]);
}

// n is 0 or 4.
fn x_load4_part(i: u32, n: u32) -> vec4<f32> {
    if n == 0u {
        return vec4<f32>();
    }
    return x_load4(i);
}
