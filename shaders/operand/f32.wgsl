// Operand in f32, one element at a time: any alignment.
// needs: x_load4_masked
// provides: X_BINDING x_data x_load x_words_masked

const X_BINDING: u32 = 1u; //param

@group(0) @binding(X_BINDING) var<storage, read> x_data: array<f32>;

fn x_load(i: u32) -> f32 {
    return x_data[i];
}

// Elements i .. i+3 as words; those from n on are 0 and never read.
fn x_words_masked(i: u32, n: u32) -> vec4<u32> {
    return bitcast<vec4<u32>>(x_load4_masked(i, n));
}
