// Operand in a 16-bit type, f16 or bf16, as halves of words, one element at a time, or eight as
// they are: any alignment, no extension.
// needs: widen_one
// provides: X_BF16 X_BINDING x_data x_load x_words_masked

const X_BINDING: u32 = 1u; //param
const X_BF16: bool = false; //param

@group(0) @binding(X_BINDING) var<storage, read> x_data: array<u32>;

fn x_load(i: u32) -> f32 {
    return widen_one(x_data[i / 2u], i % 2u, X_BF16);
}

// Elements i .. i+7 as words; those from n on are 0 and never read. n is not 0.
fn x_words_masked(i: u32, n: u32) -> vec4<u32> {
    let first = i / 2u;
    // Beyond the last word, that word is read again: a branch would make the loads wait for one
    // another.
    let last = (i + n - 1u) / 2u;
    var loaded: array<u32, 5>;
    for (var j = 0u; j < 5u; j += 1u) { //unroll
        loaded[j] = x_data[min(first + j, last)];
    }
    var words = vec4<u32>();
    for (var j = 0u; j < 4u; j += 1u) { //unroll
        let shifted = (loaded[j] >> 16u) | (loaded[j + 1u] << 16u);
        words[j] = select(loaded[j], shifted, i % 2u == 1u);
        let low = select(0u, 0xffffu, 2u * j < n);
        words[j] &= low | select(0u, 0xffff0000u, 2u * j + 1u < n);
    }
    return words;
}
