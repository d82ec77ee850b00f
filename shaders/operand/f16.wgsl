// Operand in f16 with the extension, one element at a time: any alignment.
// needs: nothing
// provides: X_BINDING x_data x_load

const X_BINDING: u32 = 1u; //param

@group(0) @binding(X_BINDING) var<storage, read> x_data: array<f16>;

fn x_load(i: u32) -> f32 {
    return f32(x_data[i]);
}
