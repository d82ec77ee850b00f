// Output in a 16-bit type, f16 or bf16, as halves of words. The invocation that writes a word owns
// all of it: if only one half is C's, the other is written back as it was.
// needs: widen
// provides: C_BF16 C_STEP c_data c_load c_store4 c_store_word narrow narrow_bf16 narrow_f16

const C_BF16: bool = false; //param

// Columns that are stored together.
const C_STEP: u32 = 4u;

@group(0) @binding(3) var<storage, read_write> c_data: array<u32>;

fn c_load(i: u32) -> f32 {
    return widen(c_data[i / 2u], C_BF16)[i % 2u];
}

// Rounds to nearest even. A NaN keeps its upper bits and is made quiet, so that it cannot become an
// infinity.
fn narrow_bf16(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    if (bits & 0x7fffffffu) > 0x7f800000u {
        return (bits >> 16u) | 0x40u;
    }
    return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}

// pack2x16float may do as it likes beyond f16's range and need not round to even; this rounds as
// the CPU does, on any driver.
fn narrow_f16(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    if magnitude > 0x7f800000u {
        return sign | 0x7e00u;
    }
    if magnitude >= 0x477ff000u { // 65520: half-way to the number after the largest
        return sign | 0x7c00u;
    }
    // Below the smallest normal f16: adding 0.5 leaves the rounded subnormal in the low bits.
    if magnitude < 0x38800000u {
        return sign | (bitcast<u32>(bitcast<f32>(magnitude) + 0.5) - 0x3f000000u);
    }
    return sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u);
}

fn narrow(x: f32) -> u32 {
    if C_BF16 {
        return narrow_bf16(x);
    }
    return narrow_f16(x);
}

fn c_store_word(word: u32, y: vec2<f32>, valid: vec2<bool>) {
    if !any(valid) {
        return;
    }
    var packed = narrow(y.x) | (narrow(y.y) << 16u);
    if !all(valid) {
        let own = select(0xffffu, 0xffff0000u, valid.y);
        packed = (packed & own) | (c_data[word] & ~own);
    }
    c_data[word] = packed;
}

// i is even.
fn c_store4(i: u32, n: u32, y: vec4<f32>) {
    c_store_word(i / 2u, y.xy, vec2<bool>(true, n > 1u));
    c_store_word(i / 2u + 1u, y.zw, vec2<bool>(n > 2u, n > 3u));
}
