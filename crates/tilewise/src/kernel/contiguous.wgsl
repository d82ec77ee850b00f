// The body of a kernel: it makes a row-major copy of a view of any strides, word after word. A word
// has PER_WORD elements of BITS bits. `place` finds an element in `source` (view.wgsl).
for (var word = global_id.x; word < out_shape[0]; word += grid.x) {
    var copied = 0u;
    for (var part = 0u; part < PER_WORD; part++) {
        let index = word * PER_WORD + part;
        if index >= view[0] {
            break;
        }
        let at = place(view, index);
        let element = extractBits(source[at / PER_WORD], at % PER_WORD * BITS, BITS);
        copied = insertBits(copied, element, part * BITS, BITS);
    }
    out[word] = copied;
}
