// Schedule: rows of A and C in segments, one per entry of B, with the segments' ends on the device.
//
// Over-launch: the host does not know the segments, so it starts ceil(M/BM) + groups rows of tiles,
// which is never too few, since each segment wastes less than one; and at most M, since none is
// without a row. A workgroup walks the ends until it finds its own; those left over have nothing to
// do. All of it is there once per K split. An end below its start or beyond M is clamped, so that
// no row outside C is touched whatever the buffer holds.
//
// A pass may compute a range of the rows and of the groups only; its rows and groups count from
// there, the ends in the buffer do not.
// needs: BM BN Owner Tile k_range params
// provides: c_entries group_end group_ends owner schedule

@group(0) @binding(6) var<storage, read> group_ends: array<u32>;

// Where a group ends among this pass's rows, given where it starts.
fn group_end(group: u32, start: u32) -> u32 {
    let own = group_ends[params.row_offset + group];
    return clamp(max(own, params.first_row) - params.first_row, start, params.m);
}

fn schedule(id: u32) -> Tile {
    var tile = Tile();
    let grid = params.tiles_m * params.tiles_n;
    let at = vec2<u32>(id % grid / params.tiles_n, id % params.tiles_n);
    tile.split = id / grid;
    if tile.split >= params.splits {
        return tile;
    }
    var start = 0u;
    var first = 0u;
    for (var group = 0u; group < params.first_group + params.entries; group += 1u) {
        let end = group_end(group, start);
        let tiles = select(0u, (end - start + BM - 1u) / BM, group >= params.first_group);
        if at.x < first + tiles {
            tile.live = true;
            tile.group = group - params.first_group;
            tile.row = start + (at.x - first) * BM;
            tile.row_end = end;
            tile.col = at.y * BN;
            let k = k_range(tile.group, tile.split);
            tile.k = k.x;
            tile.k_end = k.y;
            break;
        }
        first += tiles;
        start = end;
    }
    return tile;
}

// Which entry of B a row of C belongs to; rows of other groups, and from the last end on, belong to
// none.
fn owner(batch: u32, row: u32) -> Owner {
    var start = 0u;
    for (var group = 0u; group < params.first_group + params.entries; group += 1u) {
        let end = group_end(group, start);
        if row < end {
            return Owner(group - params.first_group, group >= params.first_group);
        }
        start = end;
    }
    return Owner(0u, false);
}

// Entries of C.
fn c_entries() -> u32 {
    return 1u;
}
