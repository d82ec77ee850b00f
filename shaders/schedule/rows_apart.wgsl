// Groups of a table that have an entry of A and of C each, with its first rows. The device takes
// the number of workgroups from the table, because entries may have few of their rows.
// needs: Owner group_table params
// provides: batch_of c_entries owner row_start tile_rows

// Rows of tiles, over all groups.
fn tile_rows() -> u32 {
    return max(group_table[params.first_group + params.entries - 1u].y, 1u);
}

fn batch_of(group: u32) -> u32 {
    return group;
}

// The first row of a group, whose entry begins with it.
fn row_start(end: u32) -> u32 {
    return 0u;
}

// Which entry of B a row of C belongs to; a row that its entry lacks belongs to none.
fn owner(batch: u32, row: u32) -> Owner {
    return Owner(batch, row < group_table[params.first_group + batch].x);
}

// Entries of C.
fn c_entries() -> u32 {
    return params.entries;
}
