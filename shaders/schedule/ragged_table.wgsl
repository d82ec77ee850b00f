// Schedule: rows of A and C in segments, as in ragged.wgsl, for many groups: a pass before has made
// a table of them (group_table.wgsl), in which a workgroup finds its tile in few steps.
// needs: BM BN Owner Tile k_range params
// provides: c_entries group_beyond group_table owner schedule

// Of each group, the end of its rows and of its tiles.
@group(0) @binding(6) var<storage, read> group_table: array<vec2<u32>>;

// The first group that ends behind a row (`by` is 0) or a tile (1); the number of groups if none
// does.
fn group_beyond(place: u32, by: u32) -> u32 {
    var low = 0u;
    var high = params.first_group + params.entries;
    while low < high {
        let middle = low + (high - low) / 2u;
        if group_table[middle][by] > place {
            high = middle;
        } else {
            low = middle + 1u;
        }
    }
    return low;
}

fn schedule(id: u32, thread: u32) -> Tile {
    var tile = Tile();
    let grid = params.tiles_m * params.tiles_n;
    let at = vec2<u32>(id % grid / params.tiles_n, id % params.tiles_n);
    tile.split = id / grid;
    if tile.split >= params.splits {
        return tile;
    }
    let group = group_beyond(at.x, 1u);
    if group == params.first_group + params.entries {
        return tile;
    }
    var before = vec2<u32>();
    if group > 0u {
        before = group_table[group - 1u];
    }
    tile.live = true;
    tile.group = group - params.first_group;
    tile.row = before.x + (at.x - before.y) * BM;
    tile.row_end = group_table[group].x;
    tile.col = at.y * BN;
    let k = k_range(tile.group, tile.split);
    tile.k = k.x;
    tile.k_end = k.y;
    return tile;
}

// Which entry of B a row of C belongs to; rows of other groups, and from the last end on, belong to
// none.
fn owner(batch: u32, row: u32) -> Owner {
    let group = group_beyond(row, 0u);
    let live = group >= params.first_group && group < params.first_group + params.entries;
    return Owner(group - params.first_group, live);
}

// Entries of C.
fn c_entries() -> u32 {
    return 1u;
}
