// The storage lines of an operand whose rows come from a matrix by index, in place of lines.wgsl.
// An index beyond the matrix stands for a row of zeros: its line is the last one, so that nothing
// outside is read, and its sums are left out.
// needs: params
// provides: X_INDICES x_index x_indices x_line x_summed

const X_INDICES: u32 = 12u; //param

@group(0) @binding(X_INDICES) var<storage, read> x_indices: array<u32>;

fn x_index(x: u32) -> u32 {
    return x_indices[params.column_offset + x * params.column_step];
}

fn x_line(x: u32) -> u32 {
    return min(x_index(x), params.table_rows - 1u);
}

// The sums of row x: 0 if the matrix has no such row.
fn x_summed(x: u32, sums: vec4<f32>) -> vec4<f32> {
    return select(vec4<f32>(), sums, x_index(x) < params.table_rows);
}
