// The body of a kernel: it brings the elements of `source`, row-major and in words, back to a view
// of any strides in `out`. `view`, PER_WORD and BITS are as in contiguous.wgsl. Elements that share
// a word have different invocations, so words are only changed by atomics.
for (var element = global_id.x; element < view[0]; element += grid.x) {
    let at = place(view, element);
    let bits = extractBits(source[element / PER_WORD], element % PER_WORD * BITS, BITS);
    if BITS == 32u {
        atomicStore(&out[at], bits);
    } else {
        let shift = at % PER_WORD * BITS;
        atomicAnd(&out[at / PER_WORD], ~insertBits(0u, ~0u, shift, BITS));
        atomicOr(&out[at / PER_WORD], bits << shift);
    }
}
