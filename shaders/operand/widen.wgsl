// Converts stored numbers to f32 or to bytes, exactly.
// needs: nothing
// provides: counted e2m1_bytes widen

// Two 16-bit elements of a word, the lower half first.
fn widen(word: u32, bf16: bool) -> vec2<f32> {
    if bf16 {
        return vec2<f32>(bitcast<f32>(word << 16u), bitcast<f32>(word & 0xffff0000u));
    }
    return unpack2x16float(word);
}

// The four bytes of a word, the lowest first: f16 has 1024 and each of them, which GPUs take apart
// several times as fast as they convert whole numbers.
fn counted(word: u32) -> vec4<f32> {
    let even = unpack2x16float((word & 0x00ff00ffu) | 0x64006400u);
    let odd = unpack2x16float(((word >> 8u) & 0x00ff00ffu) | 0x64006400u);
    return vec4<f32>(even.x, odd.x, even.y, odd.y) - 1024.0;
}

// Codes of e2m1, one in each byte, as signed bytes with twice their values: 0 1 2 3 4 6 8 12 and the
// negative ones.
fn e2m1_bytes(codes: vec4<u32>) -> vec4<u32> {
    let ones = vec4<u32>(0x01010101u);
    let low = codes & ones;
    let middle = (codes >> vec4<u32>(1u)) & ones;
    let high = (codes >> vec4<u32>(2u)) & ones;
    let more = (high & low) + 2u * (high & middle) + 2u * (high & middle & low);
    let magnitudes = (codes & vec4<u32>(0x07070707u)) + more;
    let negative = ((codes >> vec4<u32>(3u)) & ones) * 255u;
    // No byte borrows from the next.
    let moved = vec4<u32>(0x80808080u) + magnitudes - 2u * (magnitudes & negative);
    return moved ^ vec4<u32>(0x80808080u);
}
