// Schedule: the whole grid of tiles, once per batch entry and K split.
// needs: INLINE Params Tile banded
// provides: SCHEDULE_ARGUMENTS SCHEDULE_VALUES c_entries schedule
// constants: BM BN

#define SCHEDULE_ARGUMENTS
#define SCHEDULE_VALUES

INLINE Tile schedule(uint id, constant Params &params) {
    Tile tile = {};
    const uint grid = params.tiles_m * params.tiles_n;
    const uint copy = id / grid;
    if (copy >= params.entries * params.splits) {
        return tile;
    }
    const uint2 at = banded(id % grid, params);
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

// Entries of C.
INLINE uint c_entries(constant Params &params) {
    return params.entries;
}
