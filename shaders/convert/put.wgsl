// Output in f32, f16 or bf16 as words, four elements at a time, rounded by integers alone. The
// invocation that writes a word owns all of it: if only one half is C's, the other stays.
// needs: float_to_half
// provides: C_TYPE c_data c_put

// 0 for f32, 1 for f16, 2 for bf16.
const C_TYPE: u32 = 0u; //param

@group(0) @binding(3) var<storage, read_write> c_data: array<u32>;

// Stores those of elements i .. i+3, bits of f32, that are C's. i is a multiple of 4.
fn c_put(i: u32, bits: vec4<u32>, valid: vec4<bool>) {
    if C_TYPE == 0u {
        for (var j = 0u; j < 4u; j += 1u) {
            if valid[j] { c_data[i + j] = bits[j]; }
        }
        return;
    }
    for (var j = 0u; j < 4u; j += 2u) {
        let own = select(0u, 0xffffu, valid[j]) | select(0u, 0xffff0000u, valid[j + 1u]);
        let low = float_to_half(bits[j], C_TYPE == 2u);
        let word = low | (float_to_half(bits[j + 1u], C_TYPE == 2u) << 16u);
        let at = (i + j) / 2u;
        if own == 0xffffffffu {
            c_data[at] = word;
        } else if own != 0u {
            c_data[at] = (word & own) | (c_data[at] & ~own);
        }
    }
}
