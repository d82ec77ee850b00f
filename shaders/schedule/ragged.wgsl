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
// needs: BM BN Owner SEEKERS Tile k_range least params
// provides: WALKED c_entries group_end group_ends owner schedule sought tiles_until walked

@group(0) @binding(6) var<storage, read> group_ends: array<u32>;

const WALKED: u32 = 16u;

// Where a group ends among this pass's rows, given where it starts.
fn group_end(group: u32, start: u32) -> u32 {
    let own = group_ends[params.row_offset + group];
    return clamp(max(own, params.first_row) - params.first_row, start, params.m);
}

// The row of tiles after a group's own, given where the group and the pass's first group end.
fn tiles_until(group: u32, end: u32, begin: u32) -> u32 {
    return min(end - begin, (end - begin) / BM + group + 1u - params.first_group);
}

// The group of a row of tiles, the group's first row and its first row of tiles. All invocations
// look at some ends each.
fn sought(at: u32, thread: u32) -> vec3<u32> {
    let groups = params.first_group + params.entries;
    if groups <= WALKED {
        return walked(at);
    }
    var begin = 0u;
    if params.first_group > 0u {
        begin = group_end(params.first_group - 1u, 0u);
    }
    var own = vec2<u32>(0xffffffffu);
    for (var group = thread % SEEKERS; group < groups; group += SEEKERS) {
        let end = group_end(group, 0u);
        var start = 0u;
        if group > 0u {
            start = group_end(group - 1u, 0u);
        }
        if end < start {
            own.y = 0u;
        }
        let is_after = group == params.first_group || tiles_until(group - 1u, start, begin) <= at;
        if group >= params.first_group && is_after && tiles_until(group, end, begin) > at {
            own.x = min(own.x, group);
        }
    }
    let place = least(own, thread);
    if place.y == 0u {
        return walked(at);
    }
    var first = 0u;
    var start = begin;
    if place.x > params.first_group && place.x < groups {
        start = group_end(place.x - 1u, 0u);
        first = tiles_until(place.x - 1u, start, begin);
    }
    return vec3<u32>(min(place.x, groups), start, first);
}

fn walked(at: u32) -> vec3<u32> {
    var start = 0u;
    var first = 0u;
    var group = 0u;
    for (; group < params.first_group + params.entries; group += 1u) {
        let end = group_end(group, start);
        let tiles = select(0u, (end - start + BM - 1u) / BM, group >= params.first_group);
        if at < first + tiles {
            break;
        }
        first += tiles;
        start = end;
    }
    return vec3<u32>(group, start, first);
}

fn schedule(id: u32, thread: u32) -> Tile {
    var tile = Tile();
    let grid = params.tiles_m * params.tiles_n;
    let at = vec2<u32>(id % grid / params.tiles_n, id % params.tiles_n);
    tile.split = id / grid;
    if tile.split >= params.splits {
        return tile;
    }
    let place = sought(at.x, thread);
    if place.x == params.first_group + params.entries {
        return tile;
    }
    let end = group_end(place.x, place.y);
    let row = place.y + (at.x - place.z) * BM;
    if row >= end {
        return tile;
    }
    tile.live = true;
    tile.group = place.x - params.first_group;
    tile.row = row;
    tile.row_end = end;
    tile.col = at.y * BN;
    let k = k_range(tile.group, tile.split);
    tile.k = k.x;
    tile.k_end = k.y;
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
