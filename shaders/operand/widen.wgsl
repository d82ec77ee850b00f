// Converts stored numbers to f32 or to bytes, exactly.
// needs: nothing
// offers: E2M1_MORE counted e2m1_bytes widen widen_one

// Two 16-bit elements of a word, the lower half first.
fn widen(word: u32, bf16: bool) -> vec2<f32> {
    if bf16 {
        return vec2<f32>(bitcast<f32>(word << 16u), bitcast<f32>(word & 0xffff0000u));
    }
    return unpack2x16float(word);
}

// Element `at` of a word's two. NVIDIA's driver turns an index that is no constant into moves under
// conditions.
fn widen_one(word: u32, at: u32, bf16: bool) -> f32 {
    return widen(word >> (at * 16u), bf16).x;
}

// The four bytes of a word, the lowest first. f16 has 1024 plus each of them, which GPUs take apart
// several times as fast as they convert whole numbers.
fn counted(word: u32) -> vec4<f32> {
    let even = unpack2x16float((word & 0x00ff00ffu) | 0x64006400u);
    let odd = unpack2x16float(((word >> 8u) & 0x00ff00ffu) | 0x64006400u);
    return vec4<f32>(even.x, odd.x, even.y, odd.y) - 1024.0;
}

// The excess of the bytes of e2m1_bytes over the values of their codes.
const E2M1_MORE: i32 = 16;

// Four of the eight codes of e2m1 in a word, as bytes: the even ones if bit is 0, the odd ones if
// it is 4. A byte is twice its code's value (0 1 2 3 4 6 8 12, or its negative) plus E2M1_MORE.
fn e2m1_bytes(words: vec4<u32>, bit: vec4<u32>) -> vec4<u32> {
    let ones = vec4<u32>(0x11111111u);
    let high = words >> vec4<u32>(2u);
    let low = high & words & ones;
    let middle = high & (words >> vec4<u32>(1u)) & ones;
    let magnitudes = (words & vec4<u32>(0x77777777u)) + low + 2u * (middle + (middle & words));
    // 15 less the magnitude is 15 more than the negative number.
    let negative = ((words >> vec4<u32>(3u)) & ones) * 15u;
    let nibbles = vec4<u32>(0x0f0f0f0fu);
    let less = (negative >> bit) & nibbles;
    return (((magnitudes ^ negative) >> bit) & nibbles) + (vec4<u32>(0x10101010u) - less);
}
