// The body of a scatter's first pass. It stores for each row of the output which row of the input
// it gets: the last of several, counted from 1; 0 for none.
let i = group * SIZE + local_index;
if i < count {
    let row = indices[i * indices_strides[0]];
    if row < owners_shape[0] {
        atomicMax(&owners[row], i + 1u);
    }
}
