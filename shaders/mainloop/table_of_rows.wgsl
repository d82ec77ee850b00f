// Groups of rows, for a table (group_table.wgsl): by their cumulative ends if their rows follow one
// another, otherwise by how many rows each has. A number beyond M is clamped. For ranges of K,
// params.m is K, and the tile counts are not read.
// needs: params
// provides: columns_of group_numbers rows_of

@group(0) @binding(6) var<storage, read> group_numbers: array<u32>;

// Where the rows of a group end.
fn rows_of(group: u32) -> u32 {
    let own = group_numbers[params.row_offset + group];
    return min(max(own, params.first_row) - params.first_row, params.m);
}

// Each row of tiles counts once: all have the same columns.
fn columns_of(group: u32) -> u32 {
    return 1u;
}
