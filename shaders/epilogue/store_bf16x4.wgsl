// Output in bf16, four elements at a time: offset, strides and the number of columns are multiples
// of 4.
// needs: widen
// provides: C_STEP c_data c_load4_masked c_store4

// Columns that are stored together.
const C_STEP: u32 = 4u;

@group(0) @binding(3) var<storage, read_write> c_data: array<vec2<u32>>;

// n is 4.
fn c_load4_masked(i: u32, n: u32) -> vec4<f32> {
    let words = c_data[i / 4u];
    return vec4<f32>(widen(words.x, true), widen(words.y, true));
}

// Rounds to nearest even. A NaN keeps its upper bits and is made quiet, so that it cannot become an
// infinity.
fn c_store4(i: u32, n: u32, y: vec4<f32>) {
    let bits = bitcast<vec4<u32>>(y);
    let upper = bits >> vec4<u32>(16u);
    let rounded = (bits + 0x7fffu + (upper & vec4<u32>(1u))) >> vec4<u32>(16u);
    let nan = (bits & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
    let halves = select(rounded, upper | vec4<u32>(0x40u), nan);
    c_data[i / 4u] =
        vec2<u32>(halves.x | (halves.y << 16u), halves.z | (halves.w << 16u));
}
