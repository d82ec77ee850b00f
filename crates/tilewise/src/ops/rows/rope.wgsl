// The body of rotary embeddings. An invocation has a block of four pairs of a row of `cosine` and
// `sine`, which have a number for each pair. If INTERLEAVED, rows of `x` and `y` hold the pairs as
// neighbours; otherwise one row holds the first elements, and the next row the second elements.
let index = group * SIZE + local_index;
let last = cosine_ndim - 1u;
let half = cosine_shape[last];
let per_row = (half + 3u) / 4u;
if index < blocks {
    let row = index / per_row;
    let i = index % per_row * 4u;
    let count = min(4u, half - i);
    let c = cosine_get(cosine_row(row), i, cosine_strides[last], count);
    let s = sine_get(sine_row(row), i, sine_strides[last], count);
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
        y_put(y_row(row), 2u * i, y_strides[y_ndim - 1u], low, vec4(p.x, q.x, p.y, q.y));
        if high > 0u {
            y_put(y_row(row), 2u * i + 4u, y_strides[y_ndim - 1u], high, vec4(p.z, q.z, p.w, q.w));
        }
    } else {
        y_put(y_row(2u * row), i, y_strides[y_ndim - 1u], count, p);
        y_put(y_row(2u * row + 1u), i, y_strides[y_ndim - 1u], count, q);
    }
}
