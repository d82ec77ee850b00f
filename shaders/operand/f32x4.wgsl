// Operand in f32, four elements at a time: offset, strides and the contiguous extent are multiples
// of 4, so that n is 0 or 4.
// needs: nothing
// provides: X_BINDING X_SPAN X_Words x_data x_decode4 x_elements x_fetch4 x_raw4 x_words

const X_BINDING: u32 = 1u; //param

@group(0) @binding(X_BINDING) var<storage, read> x_data: array<vec4<f32>>;

alias x_raw4 = vec4<f32>;

fn x_fetch4(i: u32, n: u32) -> x_raw4 {
    return x_data[i / 4u];
}

fn x_decode4(raw: x_raw4) -> vec4<f32> {
    return raw;
}

// Elements that it reads at once for a matrix unit.
const X_SPAN: u32 = 4u;

alias X_Words = vec4<u32>;

fn x_words(i: u32) -> X_Words {
    return bitcast<vec4<u32>>(x_data[i / 4u]);
}

fn x_elements(words: X_Words, quad: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(words);
}
