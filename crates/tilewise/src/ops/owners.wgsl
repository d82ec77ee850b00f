// The body of a scatter's first pass: each row of the output learns which row of the input it
// gets, the last one of several, by its number from 1 on; 0 says none.
let i = group * SIZE + local_index;
if i < count {
    let row = indices[i * indices_strides[0]];
    if row < owners_shape[0] {
        atomicMax(&owners[row], i + 1u);
    }
}
