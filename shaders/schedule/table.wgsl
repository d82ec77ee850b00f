// Schedule: groups of rows. A pass before has made a table of them (group_table.wgsl), in which a
// workgroup finds its tile in few steps.
// needs: BM BN Tile banded batch_of divided group_beyond group_table k_range params row_start
//        tile_rows
// provides: RETURNS_EARLY schedule

// Whether a workgroup without a tile returns at once: see indexed.wgsl.
const RETURNS_EARLY: bool = false; //param

fn schedule(id: u32, thread: u32) -> Tile {
    var tile = Tile();
    let grid = tile_rows() * params.tiles_n;
    let copy = divided(id, grid);
    let at = divided(copy.y, params.tiles_n);
    tile.split = copy.x;
    let groups = params.first_group + params.entries;
    var group = groups;
    if tile.split < params.splits {
        group = group_beyond(groups, at.x, 1u);
    }
    if RETURNS_EARLY {
        if group == groups {
            return tile;
        }
    }
    if group < groups {
        var before = vec2<u32>();
        if group > 0u {
            before = group_table[group - 1u];
        }
        let ends = group_table[group];
        let of_group = banded((at.x - before.y) * params.tiles_n + at.y, ends.y - before.y);
        tile.live = true;
        tile.group = group - params.first_group;
        tile.batch = batch_of(tile.group);
        tile.row = row_start(before.x) + of_group.x * BM;
        tile.row_end = ends.x;
        tile.col = of_group.y * BN;
        let k = k_range(tile.group, tile.split);
        tile.k = k.x;
        tile.k_end = k.y;
    }
    return tile;
}
