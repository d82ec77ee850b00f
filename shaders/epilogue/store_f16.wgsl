// Output in f16 with the extension: elements are memory locations of their own, so any alignment
// will do.
// needs: nothing
// provides: C_STEP c_data c_load c_store4

// Columns that are stored together, if invocations can share them out. With one, neighbouring
// invocations store neighbouring columns.
const C_STEP: u32 = 1u; //param

@group(0) @binding(3) var<storage, read_write> c_data: array<f16>;

fn c_load(i: u32) -> f32 {
    return f32(c_data[i]);
}

fn c_store4(i: u32, n: u32, y: vec4<f32>) {
    c_data[i] = f16(y.x);
    if n > 1u { c_data[i + 1u] = f16(y.y); }
    if n > 2u { c_data[i + 2u] = f16(y.z); }
    if n > 3u { c_data[i + 3u] = f16(y.w); }
}
