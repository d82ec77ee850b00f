// Schedule: the whole grid of tiles, once per batch entry and K split.
// needs: BM BN Tile banded params
// provides: Owner c_entries owner schedule

fn schedule(id: u32) -> Tile {
    var tile = Tile();
    let grid = params.tiles_m * params.tiles_n;
    let copy = id / grid;
    if copy >= params.entries * params.splits {
        return tile;
    }
    let at = banded(id % grid, params.tiles_m);
    tile.live = true;
    tile.batch = copy % params.entries;
    tile.group = tile.batch;
    tile.row = at.x * BM;
    tile.row_end = params.m;
    tile.col = at.y * BN;
    tile.split = copy / params.entries;
    tile.k = tile.split * params.k_split;
    tile.k_end = min(tile.k + params.k_split, params.k);
    return tile;
}

struct Owner {
    group: u32,
    live: bool,
}

// Which entry of B a row of C belongs to.
fn owner(batch: u32, row: u32) -> Owner {
    return Owner(batch, row < params.m);
}

// Entries of C.
fn c_entries() -> u32 {
    return params.entries;
}
