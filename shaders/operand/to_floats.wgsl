// Words of f32 for the pass that decodes weights, by a loader of fours.
// needs: x_decode4 x_fetch4
// provides: x_words_masked

// Elements i .. i+3, a whole four; n is 4 at least.
fn x_words_masked(i: u32, n: u32) -> vec4<u32> {
    return bitcast<vec4<u32>>(x_decode4(x_fetch4(i, 4u)));
}
