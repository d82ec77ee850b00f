// The body of a combination: an invocation has a block of four elements of a row of `y`. It adds
// the rows of `x` that the row's places name, each times its weight, in the order of the places; a
// place is below `entries` if its row is there.
let index = group * SIZE + local_index;
let per_row = (y_shape[1] + 3u) / 4u;
if index < blocks {
    let row = index / per_row;
    let i = index % per_row * 4u;
    let count = min(4u, y_shape[1] - i);
    let terms = select(0u, places_shape[1], entries > 0u);
    var sum = V();
    for (var first = 0u; first < terms; first += 4u) {
        // All loads are under way before the first number is added. For a missing term, or a place
        // without a row, another row is read, and its numbers are left out.
        var rows: array<V, 4>;
        for (var j = 0u; j < 4u; j += 1u) { //unroll
            let at = min(first + j, terms - 1u);
            let place = places[row * places_strides[0] + at * places_strides[1]];
            let weight = weights_load(row * weights_strides[0] + at * weights_strides[1]);
            let start = min(place, entries - 1u) * x_strides[0];
            let term = weight * x_get(start, i, x_strides[1], count);
            rows[j] = select(V(), term, first + j < terms && place < entries);
        }
        sum = sum + rows[0] + rows[1] + rows[2] + rows[3];
    }
    y_put(row * y_strides[0], i, y_strides[1], count, sum);
}
