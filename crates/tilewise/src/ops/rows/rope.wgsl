// The body of rotary embeddings. An invocation has a block of four pairs of a row of `cosine` and
// `sine`, which have a number for each pair. If INTERLEAVED, rows of `x` and `y` hold the pairs as
// neighbours; otherwise one row holds the first elements, and the next row the second elements. If
// PLACED, `cosine` and `sine` have a row for each position. If INTO_ROWS, `y` has `room` rows for
// each `tokens` rows of `x`, and a row beyond the room is not written. If NORMED, a row is first
// divided by its root mean square, and the invocations of a row are in one workgroup; `weight` has
// the weights of the first elements of pairs, and then those of the second.
let index = group * SIZE + local_index;
let last = cosine_ndim - 1u;
let half = cosine_shape[last];
let lane = index % lanes;
let row = index / lanes;
let step = x_strides[x_ndim - 1u];
var place = 0u;
var to = row;
var is_written = index < blocks;
var factor = 1.0;
if NORMED {
    // An invocation reads what it writes below: the output may be `x`.
    let length = select(0u, half, is_written);
    var part = nothing();
    for (var i = 4u * lane; i < length; i += 4u * lanes) {
        let own = pairs(row, i, step, min(4u, length - i));
        part += dot(own.a, own.a) + dot(own.b, own.b);
    }
    factor = inverseSqrt(whole(part, local_index, lanes) / f32(2u * half) + eps);
}
if PLACED && is_written {
    place = placed(row, before) + row % tokens;
    if INTO_ROWS {
        is_written = place - first < room;
        to = row / tokens * room + place - first;
    }
}
let end = select(0u, half, is_written);
for (var i = 4u * lane; i < end; i += 4u * lanes) {
    let table = select(row, min(place, table_rows - 1u), PLACED);
    let count = min(4u, half - i);
    let c = cosine_get(cosine_row(table), i, cosine_strides[last], count);
    let s = sine_get(sine_row(table), i, sine_strides[last], count);
    let own = pairs(row, i, step, count);
    var a = own.a;
    var b = own.b;
    if NORMED {
        let each = weight_strides[weight_ndim - 1u];
        a *= factor * (weight_get(weight_row(0u), i, each, count) + offset);
        b *= factor * (weight_get(weight_row(1u), i, each, count) + offset);
    }
    let p = a * c - b * s;
    let q = b * c + a * s;
    if INTERLEAVED {
        let low = min(4u, 2u * count);
        let high = 2u * count - low;
        y_put(y_row(to), 2u * i, y_strides[y_ndim - 1u], low, vec4(p.x, q.x, p.y, q.y));
        if high > 0u {
            y_put(y_row(to), 2u * i + 4u, y_strides[y_ndim - 1u], high, vec4(p.z, q.z, p.w, q.w));
        }
    } else {
        y_put(y_row(2u * to), i, y_strides[y_ndim - 1u], count, p);
        y_put(y_row(2u * to + 1u), i, y_strides[y_ndim - 1u], count, q);
    }
}
