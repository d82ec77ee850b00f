// Schedule: rows of A and C in segments, one per entry of B, with the segments' ends on the device.
//
// Over-launch: the host does not know the segments, so it starts ceil(M/BM) + groups rows of tiles.
// These are never too few, since each segment wastes less than one; and at most M, since none is
// without a row. A threadgroup walks the ends until it finds its own; those left over have nothing
// to do. All rows of tiles are there once per K split. An end below its start or beyond M is
// clamped, so that no row outside C is touched whatever the buffer holds.
//
// A pass may compute only a range of the rows and of the groups. Its rows and groups count from the
// start of the range, the ends in the buffer from that of the whole.
// needs: INLINE Params Tile
// provides: SCHEDULE_ARGUMENTS SCHEDULE_VALUES c_entries group_ends schedule
// constants: BM BN OFFSETS_SLOT

#define SCHEDULE_ARGUMENTS , device const uint *group_ends [[buffer(OFFSETS_SLOT)]]
#define SCHEDULE_VALUES , group_ends

INLINE Tile schedule(uint id, constant Params &params, device const uint *group_ends) {
    Tile tile = {};
    const uint grid = params.tiles_m * params.tiles_n;
    const uint at_row = id % grid / params.tiles_n;
    tile.split = id / grid;
    if (tile.split >= params.splits) {
        return tile;
    }
    uint start = 0;
    uint first = 0;
    for (uint group = 0; group < params.first_group + params.entries; group += 1) {
        const uint own = group_ends[params.row_offset + group];
        const uint end = clamp(max(own, params.first_row) - params.first_row, start, params.m);
        const uint tiles = group >= params.first_group ? (end - start + BM - 1) / BM : 0;
        if (at_row < first + tiles) {
            tile.live = true;
            tile.group = group - params.first_group;
            tile.row = start + (at_row - first) * BM;
            tile.row_end = end;
            tile.col = id % params.tiles_n * BN;
            tile.k = tile.split * params.k_split;
            tile.k_end = min(tile.k + params.k_split, params.k);
            break;
        }
        first += tiles;
        start = end;
    }
    return tile;
}

// Entries of C.
INLINE uint c_entries(constant Params &) {
    return 1;
}
