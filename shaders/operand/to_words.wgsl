// Words of f16 for the pass that packs, by a loader of eights: each number is rounded to f16.
// needs: x_load8 x_widen8
// offers: x_words_masked

// Elements i .. i+7, a whole eight; n is 8 at least.
fn x_words_masked(i: u32, n: u32) -> vec4<u32> {
    let eight = x_widen8(x_load8(i, 8u));
    return vec4<u32>(
        pack2x16float(eight[0].xy), pack2x16float(eight[0].zw),
        pack2x16float(eight[1].xy), pack2x16float(eight[1].zw),
    );
}
