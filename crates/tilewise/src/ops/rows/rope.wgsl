// The body of rotary embeddings. An invocation has a block of four pairs of a row of `cosine` and
// `sine`, which have a number for each pair. If INTERLEAVED, rows of `x` and `y` hold the pairs as
// neighbours; otherwise one row holds the first elements, and the next row the second elements. If
// PLACED, `cosine` and `sine` have a row for each position. If INTO_ROWS, `y` has `room` rows for
// each `tokens` rows of `x`, and a row beyond the room is not written.
let index = group * SIZE + local_index;
let last = cosine_ndim - 1u;
let half = cosine_shape[last];
let per_row = (half + 3u) / 4u;
let row = index / per_row;
var place = 0u;
var to = row;
var is_written = index < blocks;
if PLACED && is_written {
    place = placed(row, before) + row % tokens;
    if INTO_ROWS {
        is_written = place - first < room;
        to = row / tokens * room + place - first;
    }
}
if is_written {
    let table = select(row, min(place, table_rows - 1u), PLACED);
    let i = index % per_row * 4u;
    let count = min(4u, half - i);
    let c = cosine_get(cosine_row(table), i, cosine_strides[last], count);
    let s = sine_get(sine_row(table), i, sine_strides[last], count);
    let low = min(4u, 2u * count);
    let high = 2u * count - low;
    var a = V();
    var b = V();
    if INTERLEAVED {
        let first = x_get(x_row(row), 2u * i, x_strides[x_ndim - 1u], low);
        var second = V();
        if high > 0u {
            second = x_get(x_row(row), 2u * i + 4u, x_strides[x_ndim - 1u], high);
        }
        a = vec4(first.xz, second.xz);
        b = vec4(first.yw, second.yw);
    } else {
        a = x_get(x_row(2u * row), i, x_strides[x_ndim - 1u], count);
        b = x_get(x_row(2u * row + 1u), i, x_strides[x_ndim - 1u], count);
    }
    let p = a * c - b * s;
    let q = b * c + a * s;
    if INTERLEAVED {
        y_put(y_row(to), 2u * i, y_strides[y_ndim - 1u], low, vec4(p.x, q.x, p.y, q.y));
        if high > 0u {
            y_put(y_row(to), 2u * i + 4u, y_strides[y_ndim - 1u], high, vec4(p.z, q.z, p.w, q.w));
        }
    } else {
        y_put(y_row(2u * to), i, y_strides[y_ndim - 1u], count, p);
        y_put(y_row(2u * to + 1u), i, y_strides[y_ndim - 1u], count, q);
    }
}
