// Rows or columns of a table by an index, which is read from a buffer.
// needs: params
// provides: X_BINDING x_data x_index

const X_BINDING: u32 = 12u; //param

@group(0) @binding(X_BINDING) var<storage, read> x_data: array<u32>;

fn x_index(i: u32) -> u32 {
    return x_data[params.x_offset + i * params.x_step];
}
