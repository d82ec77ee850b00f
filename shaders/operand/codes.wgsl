// Numbers that codes of 8 or 4 bits stand for. Bits above a code count for nothing.
// needs: nothing
// offers: e2m1_doubled float8 float8_four fp4 holds_nan iq4_nl nf4 one_of

// Values of codes of e4m3 or e5m2. Codes below 8 are multiples of the smallest number. In e4m3 all
// ones mean NaN, in e5m2 an exponent of all ones means infinity or NaN.
fn float8(codes: vec4<u32>, e5m2: bool) -> vec4<f32> {
    let low = codes & vec4<u32>(0x7fu);
    let sign = (codes & vec4<u32>(0x80u)) << vec4<u32>(24u);
    let normal = (low << vec4<u32>(select(20u, 21u, e5m2))) + (select(120u, 112u, e5m2) << 23u);
    let small = bitcast<vec4<u32>>(vec4<f32>(low) * select(0x1p-9, 0x1p-16, e5m2));
    let magnitude = select(normal, small, low < vec4<u32>(8u));
    let is_last = low >= vec4<u32>(select(0x7fu, 0x7cu, e5m2));
    let ones = select(vec4<u32>(), vec4<u32>(0x7f800000u), is_last);
    return bitcast<vec4<f32>>(magnitude | sign | ones);
}

// Values of four codes of e5m2, or 2^-8 of the values of four codes of e4m3: each code lies in f16
// so that its exponent is one of f16. NaN of e4m3 comes as a number.
fn float8_four(word: u32, e5m2: bool) -> vec4<f32> {
    var even = (word << 8u) & 0xff00ff00u;
    var odd = word & 0xff00ff00u;
    if !e5m2 {
        even = (even & 0x80008000u) | ((word << 7u) & 0x3f803f80u);
        odd = (odd & 0x80008000u) | ((word >> 1u) & 0x3f803f80u);
    }
    let first = unpack2x16float(even);
    let second = unpack2x16float(odd);
    return vec4<f32>(first.x, second.x, first.y, second.y);
}

// Whether one of 16 codes of e4m3 is NaN: all its bits but the sign are ones.
fn holds_nan(codes: vec4<u32>) -> bool {
    let ends = (codes & vec4<u32>(0x7f7f7f7fu)) + vec4<u32>(0x01010101u);
    return ((ends.x | ends.y | ends.z | ends.w) & 0x80808080u) != 0u;
}

// Doubled values of codes of e2m1. A table of nibbles has the magnitudes; bit 3 of a code is the
// sign.
fn e2m1_doubled(codes: vec4<u32>) -> vec4<f32> {
    let magnitudes =
        vec4<f32>((vec4<u32>(0xc8643210u) >> ((codes & vec4<u32>(7u)) * 4u)) & vec4<u32>(15u));
    return select(magnitudes, -magnitudes, (codes & vec4<u32>(8u)) != vec4<u32>());
}

// Values of IQ4_NL's codes: four to a word, as signed bytes.
fn iq4_nl(codes: vec4<u32>) -> vec4<f32> {
    let odd = (codes & vec4<u32>(4u)) != vec4<u32>();
    let low = select(vec4<u32>(0xbfad9881u), vec4<u32>(0xf6eaddcfu), odd);
    let high = select(vec4<u32>(0x26190d01u), vec4<u32>(0x71594535u), odd);
    let word = select(low, high, (codes & vec4<u32>(8u)) != vec4<u32>());
    let byte = word >> ((codes & vec4<u32>(3u)) * 8u);
    return vec4<f32>((bitcast<vec4<i32>>(byte) << vec4<u32>(24u)) >> vec4<u32>(24u));
}

// One of 16 numbers, by conditions: not every compiler indexes constants well. Bits above the
// lowest four count for nothing.
fn one_of(code: u32, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> f32 {
    let low = select(a, b, (code & 4u) != 0u);
    let high = select(c, d, (code & 4u) != 0u);
    let four = select(low, high, (code & 8u) != 0u);
    let even = select(four.x, four.z, (code & 2u) != 0u);
    let odd = select(four.y, four.w, (code & 2u) != 0u);
    return select(even, odd, (code & 1u) != 0u);
}

// The numbers of bitsandbytes' tables.
fn nf4(code: u32) -> f32 {
    return one_of(code,
        vec4<f32>(-1.0, -0.6961928, -0.52507305, -0.3949175),
        vec4<f32>(-0.28444138, -0.18477343, -0.091050036, 0.0),
        vec4<f32>(0.0795803, 0.1609302, 0.2461123, 0.33791524),
        vec4<f32>(0.44070983, 0.562617, 0.72295684, 1.0));
}

fn fp4(code: u32) -> f32 {
    return one_of(code,
        vec4<f32>(0.0, 0.0052083335, 0.6666667, 1.0),
        vec4<f32>(0.33333334, 0.5, 0.16666667, 0.25),
        vec4<f32>(0.0, -0.0052083335, -0.6666667, -1.0),
        vec4<f32>(-0.33333334, -0.5, -0.16666667, -0.25));
}
