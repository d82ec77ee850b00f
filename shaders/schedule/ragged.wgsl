// Schedule: rows of A and C in segments, one per entry of B, with the segments' ends on the device.
//
// Over-launch: the host does not know the segments, so it starts ceil(M/BM) + groups rows of tiles.
// These are never too few, since each segment wastes less than one; and at most M, since none is
// without a row. The lanes of a workgroup share the groups among them, and the lane that has the
// workgroup's own group tells the others; workgroups left over have nothing to do. All rows of
// tiles are there once per K split. An end below its start or beyond M is clamped, so that no row
// outside C is touched whatever the buffer holds.
//
// A pass may compute only a range of the rows and of the groups. Its rows and groups count from the
// start of the range, the ends in the buffer from that of the whole.
// needs: BM BN Owner Tile banded divided k_range lane_before lane_told params
// provides: EACH c_entries group_end group_ends owner place_of schedule

@group(0) @binding(6) var<storage, read> group_ends: array<u32>;

// Groups of a lane.
const EACH: u32 = 1u; //param

// Where a group ends among this pass's rows, given where it starts.
fn group_end(group: u32, start: u32) -> u32 {
    let own = group_ends[params.row_offset + group];
    return clamp(max(own, params.first_row) - params.first_row, start, params.m);
}

// The group that has a row of tiles, its first row and its first row of tiles.
fn place_of(tile_row: u32, groups: u32, lane: u32) -> vec3<u32> {
    // The end and the rows of tiles of each group. Groups before this pass's have no tiles.
    var ends = array<u32, EACH>();
    var tiles = array<u32, EACH>();
    if lane < 32u {
        var end = 0u;
        for (var i = 0u; i < EACH; i += 1u) { //unroll
            end = group_end(min(lane * EACH + i, groups - 1u), end);
            ends[i] = end;
        }
    }
    let start = lane_before(ends[EACH - 1u], false, lane);
    var end = start;
    var count = 0u;
    for (var i = 0u; i < EACH; i += 1u) { //unroll
        ends[i] = max(ends[i], start);
        if lane * EACH + i >= params.first_group {
            tiles[i] = (ends[i] - end + BM - 1u) / BM;
        }
        count += tiles[i];
        end = ends[i];
    }
    let first = lane_before(count, true, lane);
    // The last lane speaks if no group has the tile.
    let speaks = tile_row >= first && (tile_row < first + count || lane == 31u);
    var place = vec3<u32>();
    var next = vec3<u32>(lane * EACH, start, first);
    for (var i = 0u; i < EACH; i += 1u) { //unroll
        place = select(place, next, tile_row >= next.z);
        next = vec3<u32>(next.x + 1u, ends[i], next.z + tiles[i]);
    }
    return lane_told(place, speaks);
}

fn schedule(id: u32, lane: u32) -> Tile {
    var tile = Tile();
    let grid = params.tiles_m * params.tiles_n;
    let copy = divided(id, grid);
    let at = divided(copy.y, params.tiles_n);
    tile.split = copy.x;
    if tile.split < params.splits {
        let groups = params.first_group + params.entries;
        let place = place_of(at.x, groups, lane);
        let group = min(place.x, groups - 1u);
        let row_end = group_end(group, place.y);
        let own = (row_end - place.y + BM - 1u) / BM;
        if at.x - place.z < own {
            let of_group = banded((at.x - place.z) * params.tiles_n + at.y, own);
            tile.live = true;
            tile.group = group - params.first_group;
            tile.row = place.y + of_group.x * BM;
            tile.row_end = row_end;
            tile.col = of_group.y * BN;
            let k = k_range(tile.group, tile.split);
            tile.k = k.x;
            tile.k_end = k.y;
        }
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
