// Schedule: each row of A and C names its entry of B, by an index on the device. A tile has one
// row. A row whose index is no entry is a product with K = 0, so that nothing outside B is read
// whatever the buffer holds.
//
// Tiles of the same columns follow one another, row by row. So rows that name one entry read its
// columns together, from the cache. A pass may compute only a range of the rows. Its rows count
// from the start of the range, the indices in the buffer from that of the whole.
// needs: INLINE Params Tile
// provides: SCHEDULE_ARGUMENTS SCHEDULE_VALUES c_entries entry_indices schedule
// constants: BN OFFSETS_SLOT

#define SCHEDULE_ARGUMENTS , device const uint *entry_indices [[buffer(OFFSETS_SLOT)]]
#define SCHEDULE_VALUES , entry_indices

INLINE Tile schedule(uint id, constant Params &params, device const uint *entry_indices) {
    Tile tile = {};
    const uint grid = params.m * params.tiles_n;
    tile.split = id / grid;
    if (tile.split >= params.splits) {
        return tile;
    }
    tile.live = true;
    tile.row = id % params.m;
    tile.row_end = tile.row + 1;
    tile.col = id % grid / params.m * BN;
    const uint entry = entry_indices[params.row_offset + params.first_row + tile.row];
    if (entry < params.entries) {
        tile.group = entry;
        tile.k = tile.split * params.k_split;
        tile.k_end = min(tile.k + params.k_split, params.k);
    }
    return tile;
}

// Entries of C.
INLINE uint c_entries(constant Params &) {
    return 1;
}
