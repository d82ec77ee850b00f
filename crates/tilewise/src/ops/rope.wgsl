// The body of rotary embeddings. An invocation has a block of four pairs of a row of `x` and `y`.
// `cosine` and `sine` have a number for each pair. Pairs are neighbours, if INTERLEAVED, or half a
// row apart.
let index = group * SIZE + local_index;
let last = cosine_ndim - 1u;
let half = cosine_shape[last];
let per_row = (half + 3u) / 4u;
if index < blocks {
    var rest = index / per_row;
    let i = index % per_row * 4u;
    let count = min(4u, half - i);
    var at_x = 0u;
    var at_cosine = 0u;
    var at_sine = 0u;
    var at_y = 0u;
    for (var axis = last; axis > 0u; axis--) {
        let i = rest % cosine_shape[axis - 1u];
        rest /= cosine_shape[axis - 1u];
        at_x += i * x_strides[axis - 1u];
        at_cosine += i * cosine_strides[axis - 1u];
        at_sine += i * sine_strides[axis - 1u];
        at_y += i * y_strides[axis - 1u];
    }
    let c = cosine_get(at_cosine, i, cosine_strides[last], count);
    let s = sine_get(at_sine, i, sine_strides[last], count);
    let low = min(4u, 2u * count);
    let high = 2u * count - low;
    var a = V();
    var b = V();
    if INTERLEAVED {
        let first = x_get(at_x, 2u * i, x_strides[last], low);
        let second = x_get(at_x, 2u * i + 4u, x_strides[last], high);
        a = vec4(first.xz, second.xz);
        b = vec4(first.yw, second.yw);
    } else {
        a = x_get(at_x, i, x_strides[last], count);
        b = x_get(at_x, i + half, x_strides[last], count);
    }
    let p = a * c - b * s;
    let q = b * c + a * s;
    if INTERLEAVED {
        y_put(at_y, 2u * i, y_strides[last], low, vec4(p.x, q.x, p.y, q.y));
        y_put(at_y, 2u * i + 4u, y_strides[last], high, vec4(p.z, q.z, p.w, q.w));
    } else {
        y_put(at_y, i, y_strides[last], count, p);
        y_put(at_y, i + half, y_strides[last], count, q);
    }
}
