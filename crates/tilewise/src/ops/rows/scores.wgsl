// The header of softmax. A part is the largest score of some and how many are NaN or +∞, or the sum
// of exponentials. Infinities and NaN are told by their bits, because arithmetic with them is left
// to the device.

alias Part = vec2<f32>;

const LOWEST = -3.4028234e38;

fn joined(a: Part, b: Part) -> Part {
    return vec2(max(a.x, b.x), a.y + b.y);
}

fn is_finite(scores: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(scores) & vec4(0x7fffffffu)) < vec4(0x7f800000u);
}

// How scores are made of elements. Scores before `begin` are `none`, which is −∞; scores from `end`
// on are 0.
struct Scores {
    scale: f32,
    cap: f32,
    none: f32,
    begin: u32,
    end: u32,
}

// The scores from the `first` on. `at` and `step` are places and steps of x and of the mask.
fn scores(at: vec2<u32>, first: u32, reach: u32, step: vec2<u32>, by: Scores) -> Blocks {
    var s = blocks(at.x, first, reach, step.x, by.end);
    for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
        s[turn] *= by.scale;
        if CAPPED {
            s[turn] = capped(s[turn], by.cap);
        }
        let i = first + turn * reach;
        if MASKED && i < by.end {
            s[turn] += mask_get(at.y, i, step.y, min(4u, by.end - i));
        }
        if WINDOWED {
            s[turn] = select(s[turn], vec4(by.none), vec4(0u, 1u, 2u, 3u) + i < vec4(by.begin));
        }
    }
    return s;
}

// Whether all four scores count and are finite, as nearly all are. This saves testing each.
fn is_plain(s: vec4<f32>, count: u32) -> bool {
    let magnitudes = bitcast<vec4<u32>>(s) & vec4(0x7fffffffu);
    let pairs = max(magnitudes.xy, magnitudes.zw);
    return count >= 4u && max(pairs.x, pairs.y) < 0x7f800000u;
}

// The largest of the first `count` scores. −∞ does not count.
fn largest(s: vec4<f32>, count: u32) -> Part {
    if is_plain(s, count) {
        return vec2(max(max(s.x, s.y), max(s.z, s.w)), 0.0);
    }
    let there = vec4(0u, 1u, 2u, 3u) < vec4(count);
    let finite = is_finite(s);
    let f = select(vec4(LOWEST), s, there & finite);
    let is_none = bitcast<vec4<u32>>(s) == vec4(0xff800000u);
    let bad = select(0.0, 1.0, any(there & !finite & !is_none));
    return vec2(max(max(f.x, f.y), max(f.z, f.w)), bad);
}

// e^(score − largest) of the first `count` scores; 0 for −∞. It vanishes in f32 from −104 on.
fn exponentials(s: vec4<f32>, count: u32, largest: f32) -> vec4<f32> {
    let all = exp(max(s - largest, vec4(-104.0)));
    if is_plain(s, count) {
        return all;
    }
    let counted = (vec4(0u, 1u, 2u, 3u) < vec4(count)) & is_finite(s);
    return select(vec4<f32>(), all, counted);
}
