// Schedule: rows of A and C in segments, one per entry of B, with the segments' ends on the device.
//
// Over-launch: the host does not know the segments, so it starts ceil(M/BM) + groups rows of tiles,
// which is never too few, since each segment wastes less than one; and at most M, since none is
// without a row. The lanes of a workgroup share the groups among them, and the one that finds the
// workgroup's own tells the others; workgroups left over have nothing to do. All of it is there once
// per K split. An end below its start or beyond M is clamped, so that no row outside C is touched
// whatever the buffer holds. Where ends decrease, a workgroup walks over them.
//
// A pass may compute a range of the rows and of the groups only; its rows and groups count from
// there, the ends in the buffer do not.
// needs: BM BN IN_LANES Owner Tile k_range lane_sums lane_told params
// provides: EACH UNKNOWN c_entries group_end group_ends owner schedule sought tiles_of walked

@group(0) @binding(6) var<storage, read> group_ends: array<u32>;

// Groups of a lane.
const EACH: u32 = 1u; //param
// In place of a group.
const UNKNOWN: u32 = 0xffffffffu;

// Where a group ends among this pass's rows, given where it starts.
fn group_end(group: u32, start: u32) -> u32 {
    let own = group_ends[params.row_offset + group];
    return clamp(max(own, params.first_row) - params.first_row, start, params.m);
}

// Rows of tiles of a group; groups before this pass's have none.
fn tiles_of(group: u32, start: u32, end: u32) -> u32 {
    return select(0u, (end - start + BM - 1u) / BM, group >= params.first_group);
}

// The group that has a row of tiles, its first row and its first row of tiles. Behind all of them,
// the number of groups.
fn walked(at: u32) -> vec3<u32> {
    var place = vec3<u32>();
    for (; place.x < params.first_group + params.entries; place.x += 1u) {
        let end = group_end(place.x, place.y);
        let tiles = tiles_of(place.x, place.y, end);
        if at < place.z + tiles {
            break;
        }
        place = vec3<u32>(place.x, end, place.z + tiles);
    }
    return place;
}

// The same by the lanes, in place of the group UNKNOWN where ends decrease.
fn sought(at: u32, thread: u32) -> vec3<u32> {
    let groups = params.first_group + params.entries;
    let own = thread % 32u * EACH;
    // The end of the group before the lane's, then of each of these.
    var ends: array<u32, EACH + 1u>;
    var tiles = 0u;
    var falls = false;
    if thread < IN_LANES {
        ends[0] = select(0u, group_end(min(max(own, 1u), groups) - 1u, 0u), own > 0u);
        for (var i = 0u; i < EACH; i += 1u) { //unroll
            ends[i + 1u] = group_end(min(own + i, groups - 1u), 0u);
            falls |= ends[i + 1u] < ends[i];
            tiles += tiles_of(own + i, ends[i], ends[i + 1u]);
        }
    }
    let sums = lane_sums(tiles, falls, thread);
    let decrease = sums.z != 0u;
    // The first lane speaks where no other knows.
    var place = vec3<u32>(select(groups, UNKNOWN, decrease), 0u, 0u);
    var speaks = thread % 32u == 0u && (decrease || at >= sums.y);
    if !decrease && at >= sums.x && at < sums.x + tiles {
        speaks = true;
        var first = sums.x;
        for (var i = 0u; i < EACH; i += 1u) { //unroll
            let here = tiles_of(own + i, ends[i], ends[i + 1u]);
            if at >= first && at < first + here {
                place = vec3<u32>(own + i, ends[i], first);
            }
            first += here;
        }
    }
    return lane_told(place, speaks && thread < IN_LANES);
}

fn schedule(id: u32, thread: u32) -> Tile {
    var tile = Tile();
    let grid = params.tiles_m * params.tiles_n;
    let at = vec2<u32>(id % grid / params.tiles_n, id % params.tiles_n);
    tile.split = id / grid;
    if tile.split >= params.splits {
        return tile;
    }
    var place = sought(at.x, thread);
    if place.x == UNKNOWN {
        place = walked(at.x);
    }
    if place.x >= params.first_group + params.entries {
        return tile;
    }
    tile.live = true;
    tile.group = place.x - params.first_group;
    tile.row = place.y + (at.x - place.z) * BM;
    tile.row_end = group_end(place.x, place.y);
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
