// Elements for a matrix unit of f16, by a loader of codes that are no bytes: 32 codes are one load,
// and each number is rounded to f16 on its way into workgroup memory, once.
// needs: X_CODES_ALONE X_CODE_STEP X_Raw x_four x_numbers x_raw
// offers: X_SPAN X_Words x_elements x_words

const X_SPAN: u32 = 32u;

const_assert X_CODES_ALONE;

alias X_Words = X_Raw;

fn x_words(i: u32) -> X_Words {
    return x_raw(i);
}

// Four of 32 elements.
fn x_elements(words: X_Words, quad: u32) -> vec4<f16> {
    let numbers = x_numbers(words, quad / 4u);
    return vec4<f16>(numbers.x * (X_CODE_STEP * x_four(words, quad)) + numbers.y);
}
