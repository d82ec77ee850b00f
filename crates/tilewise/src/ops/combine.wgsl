// The body of a combination: an invocation has a block of four elements of a row of `y`. It adds
// the rows of `x` that the row's places name, each times its weight, in the order of the places; a
// place is below `entries` if its row is there.
let index = group * SIZE + local_index;
let per_row = (y_shape[1] + 3u) / 4u;
if index < blocks {
    let row = index / per_row;
    let i = index % per_row * 4u;
    let count = min(4u, y_shape[1] - i);
    var sum = V();
    for (var j = 0u; j < places_shape[1]; j++) {
        let place = places[row * places_strides[0] + j * places_strides[1]];
        if place < entries {
            let weight = weights_load(row * weights_strides[0] + j * weights_strides[1]);
            sum += weight * x_get(place * x_strides[0], i, x_strides[1], count);
        }
    }
    y_put(row * y_strides[0], i, y_strides[1], count, sum);
}
