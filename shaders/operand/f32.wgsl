// Operand in f32, one element at a time: any alignment.

const X_BINDING: u32 = 1u; //param

@group(0) @binding(X_BINDING) var<storage, read> x_data: array<f32>;

fn x_load(i: u32) -> f32 {
    return x_data[i];
}
