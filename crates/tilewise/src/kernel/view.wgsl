// The header of contiguous.wgsl and scatter.wgsl. `view` holds the number of elements, the place of
// the first one, and then size and stride of each of NDIM dimensions, the last dimension first.
fn place(view: array<u32, 2u + 2u * NDIM>, element: u32) -> u32 {
    var rest = element;
    var at = view[1];
    for (var dimension = 0u; dimension < NDIM; dimension++) {
        let size = view[2u + 2u * dimension];
        at += rest % size * view[3u + 2u * dimension];
        rest /= size;
    }
    return at;
}
