// The header of sampling: what logits weigh, the key from which on they are kept, and noise.

// A logit's exponential, relative to that of the largest one. It is 1 if there is no sharpness.
fn weight(logit: f32, largest: f32, sharpness: f32) -> f32 {
    if sharpness == 0.0 {
        return 1.0;
    }
    return exp(max((logit - largest) * sharpness, -104.0));
}

// The largest key for which the logits of a row with this key or a larger one weigh `wanted` at
// least. `at` is the place of the row's first logit, and the step from one logit to the next. Each
// turn finds two bits, from the highest down.
fn threshold(
    wanted: f32, at: vec2<u32>, length: u32, index: u32, largest: f32, sharpness: f32
) -> u32 {
    var found = 0u;
    for (var bits = 32u; bits > 0u; bits -= 2u) {
        let unit = 1u << (bits - 2u);
        let keys = found + unit * vec3(1u, 2u, 3u);
        var part = vec3<f32>();
        for (var i = lane_of(index, LANES); i < length; i += LANES) {
            let logit = x_load(at.x + i * at.y);
            let key = ordered(logit);
            if key >= keys.x {
                let own = weight(logit, largest, sharpness);
                part += select(vec3<f32>(), vec3(own), vec3(key) >= keys);
            }
        }
        let all = vec3(total(part.x, index), total(part.y, index), total(part.z, index));
        let reached = select(vec3<u32>(), vec3(unit), all >= vec3(wanted));
        found += reached.x + reached.y + reached.z;
    }
    return found;
}

// A permutation of the numbers of 32 bits, without any order: lowbias32 of C. Wellons' hash
// prospector.
fn mixed(key: u32) -> u32 {
    var n = key;
    n = (n ^ (n >> 16u)) * 0x7feb352du;
    n = (n ^ (n >> 15u)) * 0x846ca68bu;
    return n ^ (n >> 16u);
}

// A number of the Gumbel distribution, −log(−log(1 − u)), from 32 random bits. Small u, which give
// large numbers, keep their digits.
fn gumbel(bits: u32) -> f32 {
    let u = min((f32(bits) + 0.5) / 4294967296.0, 0.99999994);
    return -log(select(-log(1.0 - u), u * (1.0 + 0.5 * u), u < 0.0078125));
}
