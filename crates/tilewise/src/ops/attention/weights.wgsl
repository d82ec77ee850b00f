// The header of attention. Scores are finite: a score that does not count is ABSENT, and BAD stands
// for NaN and +∞, because arithmetic with them is left to the device. A part of a row is its
// largest score, and the sum of exponentials relative to it.

const ABSENT = -3.4028234e38;
const BAD = 3.4028234e38;
const MOST = 3e38;

// A score with its mark, if it has one.
fn marked(s: f32) -> f32 {
    if (bitcast<u32>(s) & 0x7fffffffu) < 0x7f800000u {
        return clamp(s, -MOST, MOST);
    }
    return select(BAD, ABSENT, bitcast<u32>(s) == 0xff800000u);
}

// e^(s − top). It vanishes in f32 from −104 on.
fn exponential(s: f32, top: f32) -> f32 {
    return exp(max(s - top, -104.0));
}

// Four results: weighted values over the sum of the weights. Every sum has a 1 for its largest
// score, unless no score counts. `row` is any number: NaN is made of what is not constant.
fn quotient(sum: vec4<f32>, top: f32, total: f32, row: u32) -> vec4<f32> {
    if top > MOST {
        return vec4(bitcast<f32>(0x7fc00000u | min(row, 1u)));
    }
    return sum * (1.0 / max(total, 0.5));
}
