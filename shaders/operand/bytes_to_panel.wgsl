// Elements for a matrix unit of f16, by a loader of bytes: 32 codes are one load, and each number
// is rounded to f16 on its way into workgroup memory, once.
// needs: X_CODE_STEP X_F16_NUMBERS X_LESS_BY X_PAIRED X_Raw X_SIGNED counted x_bytes x_numbers
//        x_raw
// offers: X_SPAN X_Words x_elements x_four_of x_words

const X_SPAN: u32 = 32u;

alias X_Words = X_Raw;

fn x_words(i: u32) -> X_Words {
    return x_raw(i);
}

// The numbers of four bytes: the even ones, then the odd ones. Scale and bias in f16 make the
// product and the sum one operation of f16, which rounds once on GPUs that have matrix units.
fn x_four_of(bytes: u32, numbers: vec2<f32>) -> vec4<f16> {
    if X_F16_NUMBERS {
        // f16 has 1024 plus each byte, exactly.
        let even = unpack2x16float((bytes & 0x00ff00ffu) | 0x64006400u);
        let odd = unpack2x16float(((bytes >> 8u) & 0x00ff00ffu) | 0x64006400u);
        let codes = vec4<f16>(vec2<f16>(even), vec2<f16>(odd)) - f16(1024 + X_LESS_BY);
        return fma(codes, vec4<f16>(f16(numbers.x * X_CODE_STEP)), vec4<f16>(f16(numbers.y)));
    }
    let codes = counted(bytes) - f32(X_LESS_BY);
    let four = vec4<f16>(numbers.x * X_CODE_STEP * codes + numbers.y);
    return vec4<f16>(four.x, four.z, four.y, four.w);
}

// Four of 32 elements.
fn x_elements(words: X_Words, quad: u32) -> vec4<f16> {
    var bytes = x_bytes(words, quad / 4u);
    if X_SIGNED {
        bytes ^= vec4<u32>(0x80808080u);
    }
    let numbers = x_numbers(words, quad / 4u);
    if !X_PAIRED {
        let four = x_four_of(bytes[quad % 4u], numbers);
        return vec4<f16>(four.x, four.z, four.y, four.w);
    }
    let even = x_four_of(bytes[quad % 4u / 2u * 2u], numbers);
    let odd = x_four_of(bytes[quad % 4u / 2u * 2u + 1u], numbers);
    if quad % 2u == 0u {
        return vec4<f16>(even.x, odd.x, even.z, odd.z);
    }
    return vec4<f16>(even.y, odd.y, even.w, odd.w);
}
