// Schedule: the whole grid of tiles, once per batch entry and K split.
// needs: BM BN Owner Tile banded divided k_range params row_end
// provides: c_entries owner schedule

fn schedule(id: u32, thread: u32) -> Tile {
    var tile = Tile();
    let grid = params.tiles_m * params.tiles_n;
    let copy = divided(id, grid);
    if copy.x < params.entries * params.splits {
        let at = banded(copy.y, params.tiles_m);
        let own = divided(copy.x, params.entries);
        let entry = own.y;
        let end = row_end(entry);
        if at.x * BM < end {
            tile.live = true;
            tile.batch = entry;
            tile.group = entry;
            tile.row = at.x * BM;
            tile.row_end = end;
            tile.col = at.y * BN;
            tile.split = own.x;
            let k = k_range(entry, tile.split);
            tile.k = k.x;
            tile.k_end = k.y;
        }
    }
    return tile;
}

// Which entry of B a row of C belongs to; a row that its entry lacks belongs to none.
fn owner(batch: u32, row: u32) -> Owner {
    return Owner(batch, row < row_end(batch));
}

// Entries of C.
fn c_entries() -> u32 {
    return params.entries;
}
