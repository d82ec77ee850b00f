// Groups that have the first rows of an entry each, for a table (group_table.wgsl): by their
// counts, of which one beyond M is clamped.
// needs: params
// provides: BM FOLLOW columns_of row_counts rows_of

const BM: u32 = 8u; //param
const FOLLOW: bool = false;

@group(0) @binding(6) var<storage, read> row_counts: array<u32>;

fn rows_of(group: u32) -> u32 {
    let own = row_counts[params.row_offset + group];
    return min(max(own, params.first_row) - params.first_row, params.m);
}

fn columns_of(group: u32) -> u32 {
    return 1u;
}
