// Operand in a 16-bit type, f16 or bf16, as halves of words, eight at a time: offset, strides and
// the contiguous extent are multiples of 8.
// needs: widen
// provides: X_BF16 X_BINDING X_Eight x_data x_load8 x_widen8

const X_BINDING: u32 = 1u; //param
const X_BF16: bool = false; //param

@group(0) @binding(X_BINDING) var<storage, read> x_data: array<vec4<u32>>;

// Eight elements as they are stored: half the registers while they are on their way.
alias X_Eight = vec4<u32>;

// n is 0, or 8 at least.
fn x_load8(i: u32, n: u32) -> X_Eight {
    if n == 0u {
        return vec4<u32>();
    }
    return x_data[i / 8u];
}

fn x_widen8(eight: X_Eight) -> mat2x4<f32> {
    return mat2x4<f32>(
        vec4<f32>(widen(eight.x, X_BF16), widen(eight.y, X_BF16)),
        vec4<f32>(widen(eight.z, X_BF16), widen(eight.w, X_BF16)),
    );
}
