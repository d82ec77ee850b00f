// Schedule: the whole grid of tiles, once per range of K, with the ranges' ends on the device. An
// end below its start or beyond K is clamped, so that no element outside A and B is touched
// whatever the buffer holds.
//
// A pass may compute only a range of the entries. Its entries count from the start of the range,
// the ends in the buffer from that of the whole.
// needs: INLINE Params Tile banded
// provides: SCHEDULE_ARGUMENTS SCHEDULE_VALUES c_entries k_ends schedule
// constants: BM BN OFFSETS_SLOT

#define SCHEDULE_ARGUMENTS , device const uint *k_ends [[buffer(OFFSETS_SLOT)]]
#define SCHEDULE_VALUES , k_ends

INLINE Tile schedule(uint id, constant Params &params, device const uint *k_ends) {
    Tile tile = {};
    const uint grid = params.tiles_m * params.tiles_n;
    const uint entry = id / grid;
    if (entry >= params.entries) {
        return tile;
    }
    const uint2 at = banded(id % grid, params);
    tile.live = true;
    tile.batch = entry;
    tile.group = entry;
    tile.row = at.x * BM;
    tile.row_end = params.m;
    tile.col = at.y * BN;
    for (uint group = 0; group <= params.first_group + entry; group += 1) {
        tile.k = tile.k_end;
        tile.k_end = clamp(k_ends[params.row_offset + group], tile.k, params.k);
    }
    return tile;
}

// Entries of C.
INLINE uint c_entries(constant Params &params) {
    return params.entries;
}
