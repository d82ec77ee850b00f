// Operand in a 16-bit type, f16 or bf16, as halves of words, four at a time: offset, strides and
// the contiguous extent are multiples of 4. It also serves f16 on devices with the extension: a
// driver was seen to take vectors of f16 apart, element by element, on their way through a loop
// (benches/record/NOTES.md).
// needs: widen
// provides: X_BF16 X_BINDING x_data x_decode4 x_fetch4 x_raw4

const X_BINDING: u32 = 1u; //param
const X_BF16: bool = false; //param

@group(0) @binding(X_BINDING) var<storage, read> x_data: array<vec2<u32>>;

alias x_raw4 = vec2<u32>;

fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    return x_data[i / 4u];
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    return vec4<f32>(widen(raw.x, X_BF16), widen(raw.y, X_BF16));
}
