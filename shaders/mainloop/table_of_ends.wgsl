// Groups whose rows follow one another, for a table (group_table.wgsl): by their cumulative ends,
// of which one beyond M is clamped. Of ranges of K, params.m is K, and the tiles are of no use.
// needs: params
// provides: BM FOLLOW columns_of group_ends rows_of

const BM: u32 = 8u; //param
const FOLLOW: bool = true;

@group(0) @binding(6) var<storage, read> group_ends: array<u32>;

// Where the rows of a group end.
fn rows_of(group: u32) -> u32 {
    let own = group_ends[params.row_offset + group];
    return min(max(own, params.first_row) - params.first_row, params.m);
}

fn columns_of(group: u32) -> u32 {
    return 1u;
}
