// Two 16-bit elements of a word, the lower half first, as f32: exact for both types.
// needs: nothing
// provides: widen

fn widen(word: u32, bf16: bool) -> vec2<f32> {
    if bf16 {
        return vec2<f32>(bitcast<f32>(word << 16u), bitcast<f32>(word & 0xffff0000u));
    }
    return unpack2x16float(word);
}
