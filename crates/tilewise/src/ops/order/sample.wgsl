// The body of sampling: LANES invocations share a row, and a workgroup has ROWS of the `rows` rows.
// Logits are kept from a key on, by their order. Each one gets a random number of the Gumbel
// distribution, times the temperature; the place of the largest sum is a draw from the softmax.
let lane = lane_of(local_index, LANES);
let row = group * ROWS + row_of(local_index, LANES);
let last = x_ndim - 1u;
let at = vec2(x_row(row), x_strides[last]);
let length = select(0u, x_shape[last], row < rows);

var own = nothing();
for (var i = lane; i < length; i += LANES) {
    own = joined(own, vec2(ordered(x_load(at.x + i * at.y)), i));
}
let top = whole(own, local_index, LANES).x;
let largest = number(top);

var least = 0u;
if TOP_K {
    least = threshold(k, at, length, local_index, largest, 0.0);
}
if TOP_P {
    var part = 0.0;
    for (var i = lane; i < length; i += LANES) {
        let logit = x_load(at.x + i * at.y);
        if ordered(logit) >= least {
            part += weight(logit, largest, sharpness);
        }
    }
    let wanted = p * total(part, local_index);
    // Beside an infinite logit the others weigh nothing.
    least = min(threshold(wanted, at, length, local_index, largest, sharpness), top);
}
if MIN_P {
    least = max(least, ordered(largest - spread));
}

// The noise depends on seed, counter, row and place.
let draw = row + before_rows;
let counter = placed(min(row, rows - 1u), before);
let low = mixed(mixed(mixed(seed_low) + counter) + draw);
let high = mixed(mixed(mixed(seed_high) ^ counter) + draw);
own = nothing();
for (var i = lane; i < length; i += LANES) {
    let logit = x_load(at.x + i * at.y);
    if ordered(logit) >= least {
        let score = logit + temperature * gumbel(mixed(mixed(i ^ low) + high));
        own = joined(own, vec2(ordered(score), i));
    }
}
own = whole(own, local_index, LANES);
if lane == 0u && row < rows {
    y[y_row(row)] = own.y;
}
