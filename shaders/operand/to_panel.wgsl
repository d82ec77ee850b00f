// Elements for a matrix unit of f16, by a loader of eights: each number is rounded to f16 on its
// way into workgroup memory.
// needs: X_Eight x_load8 x_widen8
// offers: X_SPAN X_Words x_elements x_words

const X_SPAN: u32 = 8u;

alias X_Words = X_Eight;

fn x_words(i: u32) -> X_Words {
    return x_load8(i, 8u);
}

// The first or the second four elements of eight.
fn x_elements(words: X_Words, quad: u32) -> vec4<f16> {
    let eight = x_widen8(words);
    return vec4<f16>(select(eight[0], eight[1], quad == 1u));
}
