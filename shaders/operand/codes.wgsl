// Numbers that codes of 8 or 4 bits stand for. Bits above a code count for nothing.
// needs: nothing
// offers: e2m1_doubled float8 iq4_nl

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
