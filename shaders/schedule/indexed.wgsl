// Schedule: each row of A and C names its entry of B, by an index on the device. A tile has one
// row. A row whose index is no entry is a product with K = 0, so that nothing outside B is read
// whatever the buffer holds.
//
// Tiles of the same columns follow one another, row by row. So rows that name one entry read its
// columns together, from the cache. A pass may compute only a range of the rows. Its rows count
// from the start of the range, the indices in the buffer from that of the whole.
// needs: BN Owner Tile divided k_range params
// provides: RETURNS_EARLY c_entries entry_indices entry_of owner schedule

@group(0) @binding(6) var<storage, read> entry_indices: array<u32>;

// The entry of B that a row names. If it names none, this may be any number beyond those of B.
fn entry_of(row: u32) -> u32 {
    return entry_indices[params.row_offset + params.first_row + row];
}

// Whether a workgroup without a tile returns at once, in texts for matrix units: NVIDIA's driver
// then makes faster code of their mainloop. FXC refuses barriers after a second return; no device
// whose shaders it compiles has such units.
const RETURNS_EARLY: bool = false; //param

fn schedule(id: u32, thread: u32) -> Tile {
    var tile = Tile();
    let copy = divided(id, params.m * params.tiles_n);
    tile.split = copy.x;
    if RETURNS_EARLY {
        if tile.split >= params.splits {
            return tile;
        }
    }
    if tile.split < params.splits {
        tile.live = true;
        let at = divided(copy.y, params.m);
        tile.row = at.y;
        tile.row_end = tile.row + 1u;
        tile.col = at.x * BN;
        tile.group = owner(0u, tile.row).group;
        if entry_of(tile.row) < params.entries {
            let k = k_range(tile.group, tile.split);
            tile.k = k.x;
            tile.k_end = k.y;
        }
    }
    return tile;
}

// Which entry of B a row of C belongs to: the first, if it names none.
fn owner(batch: u32, row: u32) -> Owner {
    let entry = entry_of(row);
    return Owner(select(0u, entry, entry < params.entries), true);
}

// Entries of C.
fn c_entries() -> u32 {
    return 1u;
}
