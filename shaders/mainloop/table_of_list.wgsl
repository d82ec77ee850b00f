// Products of a list, for a table (group_table.wgsl): by their sizes, nine numbers from one to the
// next. Sizes beyond those of the pass are cut.
// needs: params
// provides: BN columns_of list rows_of

const BN: u32 = 8u; //param

@group(0) @binding(6) var<storage, read> list: array<u32>;

fn rows_of(product: u32) -> u32 {
    return min(list[params.row_offset + product * 9u], params.m);
}

// How many tiles lie side by side.
fn columns_of(product: u32) -> u32 {
    return (min(list[params.row_offset + product * 9u + 1u], params.n) + BN - 1u) / BN;
}
