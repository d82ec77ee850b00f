// Schedule: rows of A and C in segments, one per entry of B, with the segments' ends on the device.
//
// Over-launch: the host does not know the segments, so it starts ceil(M/BM) + groups rows of tiles, which is never too few, since
// each segment wastes less than one. A workgroup walks the ends until it finds its own; those left over have nothing to do.
// An end below its start or beyond M is clamped, so that no row outside C is touched whatever the buffer holds.

@group(0) @binding(6) var<storage, read> group_ends: array<u32>;

fn schedule(id: u32) -> Tile {
    var tile = Tile();
    let at = vec2<u32>(id / params.tiles_n, id % params.tiles_n);
    var start = 0u;
    var first = 0u;
    for (var group = 0u; group < params.entries; group += 1u) {
        let end = clamp(group_ends[group], start, params.m);
        let tiles = (end - start + BM - 1u) / BM;
        if at.x < first + tiles {
            tile.live = true;
            tile.group = group;
            tile.row = start + (at.x - first) * BM;
            tile.row_end = end;
            tile.col = at.y * BN;
            tile.k_end = params.k;
            break;
        }
        first += tiles;
        start = end;
    }
    return tile;
}

struct Owner {
    group: u32,
    live: bool,
}

// Which entry of B a row of C belongs to; rows from the last end on belong to none.
fn owner(batch: u32, row: u32) -> Owner {
    var start = 0u;
    for (var group = 0u; group < params.entries; group += 1u) {
        let end = clamp(group_ends[group], start, params.m);
        if row < end {
            return Owner(group, true);
        }
        start = end;
    }
    return Owner(0u, false);
}

// Entries of C.
fn c_entries() -> u32 {
    return 1u;
}
