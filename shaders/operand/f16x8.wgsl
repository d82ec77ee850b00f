// Operand in f16 with the extension, eight elements at a time and as words: offset, strides and the
// contiguous extent are multiples of 8.
// needs: nothing
// provides: X_BINDING X_SPAN X_Words x_data x_elements x_words

const X_BINDING: u32 = 1u; //param

@group(0) @binding(X_BINDING) var<storage, read> x_data: array<vec4<u32>>;

// Elements that it reads at once for a matrix unit.
const X_SPAN: u32 = 8u;

alias X_Words = vec4<u32>;

fn x_words(i: u32) -> X_Words {
    return x_data[i / 8u];
}

// The first or the second four elements of eight. Words are kept so long because a driver was seen
// to take vectors of f16 apart, element by element, on their way through a loop
// (benches/record/NOTES.md). Each f16 is an f32, so that this keeps every value.
fn x_elements(words: X_Words, quad: u32) -> vec4<f16> {
    let pair = select(words.xy, words.zw, quad == 1u);
    return vec4<f16>(vec2<f16>(unpack2x16float(pair.x)), vec2<f16>(unpack2x16float(pair.y)));
}
