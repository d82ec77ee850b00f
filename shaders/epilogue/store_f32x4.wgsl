// Output in f32, four elements at a time: offset, strides and the number of columns are multiples
// of 4.
// needs: nothing
// provides: C_STEP c_data c_load4_masked c_store4

// Columns that are stored together.
const C_STEP: u32 = 4u;

@group(0) @binding(3) var<storage, read_write> c_data: array<vec4<f32>>;

// n is 4.
fn c_load4_masked(i: u32, n: u32) -> vec4<f32> {
    return c_data[i / 4u];
}

fn c_store4(i: u32, n: u32, y: vec4<f32>) {
    c_data[i / 4u] = y;
}
