// The body of a kernel: a row-major copy of a view of any strides, word after word. `view` holds
// the number of elements, the place of the first one in `source`, and then size and stride of each
// of NDIM dimensions, the last dimension first. A word has PER_WORD elements of BITS bits.
for (var word = global_id.x; word < out_shape[0]; word += grid.x) {
    var copied = 0u;
    for (var part = 0u; part < PER_WORD; part++) {
        var rest = word * PER_WORD + part;
        if rest >= view[0] {
            break;
        }
        var at = view[1];
        for (var dimension = 0u; dimension < NDIM; dimension++) {
            let size = view[2u + 2u * dimension];
            at += rest % size * view[3u + 2u * dimension];
            rest /= size;
        }
        let element = extractBits(source[at / PER_WORD], at % PER_WORD * BITS, BITS);
        copied = insertBits(copied, element, part * BITS, BITS);
    }
    out[word] = copied;
}
