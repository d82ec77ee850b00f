// Words of two 16-bit floats, the first in the lower half, to f32 and back, by integers if a
// device may round or flush as it likes: every device has the same bits.
fn tilewise_widen_f16(word: u32) -> vec2<f32> {
    let halves = vec2<u32>(word, word >> 16u);
    let magnitude = halves & vec2<u32>(0x7fffu);
    let sign = (halves & vec2<u32>(0x8000u)) << vec2<u32>(16u);
    // Infinities and NaN have the largest exponent in both types.
    let most = magnitude >= vec2<u32>(0x7c00u);
    let more = select(vec2<u32>(0x38000000u), vec2<u32>(0x70000000u), most);
    let normal = (magnitude << vec2<u32>(13u)) + more;
    // Subnormals are multiples of 2 to the power of -24.
    let small = bitcast<vec2<u32>>(vec2<f32>(magnitude) * 5.9604644775390625e-8);
    return bitcast<vec2<f32>>(sign | select(normal, small, magnitude < vec2<u32>(0x400u)));
}
fn tilewise_narrow_f16(x: vec2<f32>) -> u32 {
    let bits = bitcast<vec2<u32>>(x);
    let sign = (bits >> vec2<u32>(16u)) & vec2<u32>(0x8000u);
    let magnitude = bits & vec2<u32>(0x7fffffffu);
    let odd = (magnitude >> vec2<u32>(13u)) & vec2<u32>(1u);
    var half = (magnitude - vec2<u32>(0x37fff001u) + odd) >> vec2<u32>(13u);
    // Below the smallest normal f16: adding 0.5 leaves the rounded subnormal in the low bits.
    let small = bitcast<vec2<u32>>(bitcast<vec2<f32>>(magnitude) + 0.5) - vec2<u32>(0x3f000000u);
    half = select(half, small, magnitude < vec2<u32>(0x38800000u));
    // From 65520 on, half-way to the number after the largest, it is infinite.
    half = select(half, vec2<u32>(0x7c00u), magnitude >= vec2<u32>(0x477ff000u));
    half = sign | select(half, vec2<u32>(0x7e00u), magnitude > vec2<u32>(0x7f800000u));
    return half.x | (half.y << 16u);
}
fn tilewise_widen_bf16(word: u32) -> vec2<f32> {
    return vec2<f32>(bitcast<f32>(word << 16u), bitcast<f32>(word & 0xffff0000u));
}
fn tilewise_narrow_bf16(x: vec2<f32>) -> u32 {
    let bits = bitcast<vec2<u32>>(x);
    let high = bits >> vec2<u32>(16u);
    let rounded = (bits + vec2<u32>(0x7fffu) + (high & vec2<u32>(1u))) >> vec2<u32>(16u);
    let nan = (bits & vec2<u32>(0x7fffffffu)) > vec2<u32>(0x7f800000u);
    let half = select(rounded, high | vec2<u32>(0x40u), nan);
    return half.x | (half.y << 16u);
}
