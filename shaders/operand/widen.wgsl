// Numbers on their way to f32, exactly.
// needs: nothing
// provides: counted widen

// Two 16-bit elements of a word, the lower half first.
fn widen(word: u32, bf16: bool) -> vec2<f32> {
    if bf16 {
        return vec2<f32>(bitcast<f32>(word << 16u), bitcast<f32>(word & 0xffff0000u));
    }
    return unpack2x16float(word);
}

// Whole numbers below 2^23, as the digits of f32 from 2^23 on. GPUs add several times as fast as they
// convert.
fn counted(numbers: vec4<u32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(numbers | vec4<u32>(0x4b000000u)) - vec4<f32>(8388608.0);
}
