// Groups of a table whose rows follow one another in A and C. The host does not know how many tiles
// they have, and starts workgroups as ragged.wgsl says.
// needs: Owner group_beyond params
// provides: batch_of c_entries owner row_start tile_rows

// Rows of tiles, of which some may have nothing to do.
fn tile_rows() -> u32 {
    return params.tiles_m;
}

fn batch_of(group: u32) -> u32 {
    return 0u;
}

// The first row of a group, given where the rows of the one before it end.
fn row_start(end: u32) -> u32 {
    return end;
}

// Which entry of B a row of C belongs to; rows of other groups, and from the last end on, belong to
// none.
fn owner(batch: u32, row: u32) -> Owner {
    let groups = params.first_group + params.entries;
    let group = group_beyond(groups, row, 0u);
    return Owner(group - params.first_group, group >= params.first_group && group < groups);
}

// Entries of C.
fn c_entries() -> u32 {
    return 1u;
}
