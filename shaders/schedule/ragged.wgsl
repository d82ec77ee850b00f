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
// needs: BM BN Owner Tile k_range lane_beyond params
// provides: EACH c_entries group_end group_ends owner schedule sought walked

@group(0) @binding(6) var<storage, read> group_ends: array<u32>;

// Groups that a lane looks at together.
const EACH: u32 = 4u;

// Where a group ends among this pass's rows, given where it starts.
fn group_end(group: u32, start: u32) -> u32 {
    let own = group_ends[params.row_offset + group];
    return clamp(max(own, params.first_row) - params.first_row, start, params.m);
}

// From a group on, given its first row and tile, the group that has a tile, and its first row and
// tile.
fn walked(at: u32, place: vec3<u32>) -> vec3<u32> {
    var here = place;
    for (; here.x < params.first_group + params.entries; here.x += 1u) {
        let end = group_end(here.x, here.y);
        let rows = select(0u, end - here.y, here.x >= params.first_group);
        let tiles = (rows + BM - 1u) / BM;
        if at < here.z + tiles {
            break;
        }
        here = vec3<u32>(here.x, end, here.z + tiles);
    }
    return here;
}

// A place from which on to walk to the group that has a tile: the lanes look at the ends of EACH
// groups each. Where ends decrease, it is the first of all.
fn sought(at: u32, thread: u32) -> vec3<u32> {
    let groups = params.first_group + params.entries;
    var place = vec3<u32>();
    for (var first = 0u; first < groups; first += 32u * EACH) {
        let own = first + thread % 32u * EACH;
        var start = 0u;
        if own > 0u {
            start = group_end(min(own, groups) - 1u, 0u);
        }
        var tiles = 0u;
        var falls = false;
        for (var i = 0u; i < EACH; i += 1u) { //unroll
            let end = group_end(min(own + i, groups - 1u), 0u);
            falls |= end < start;
            let rows = select(0u, end - start, own + i >= params.first_group);
            tiles += (rows + BM - 1u) / BM;
            start = end;
        }
        let lane = lane_beyond(at - place.z, select(tiles, 0u, falls), falls, thread);
        if lane.z > 0u {
            return vec3<u32>();
        }
        place = vec3<u32>(first + lane.x * EACH, 0u, place.z + lane.y);
        if lane.x < 32u {
            if place.x > 0u {
                place.y = group_end(place.x - 1u, 0u);
            }
            break;
        }
    }
    return place;
}

fn schedule(id: u32, thread: u32) -> Tile {
    var tile = Tile();
    let grid = params.tiles_m * params.tiles_n;
    let at = vec2<u32>(id % grid / params.tiles_n, id % params.tiles_n);
    tile.split = id / grid;
    if tile.split >= params.splits {
        return tile;
    }
    let place = walked(at.x, sought(at.x, thread));
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
