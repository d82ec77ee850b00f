// The tile that a schedule gives to a threadgroup, for its mainloop to compute.
// needs: INLINE Params
// offers: Tile banded

struct Tile {
    // Entry of A, C and the residual.
    uint batch;
    // Entry of B and the bias: the batch entry, or the group.
    uint group;
    // First row and column, and the end of the rows. Columns end at params.n.
    uint row;
    uint row_end;
    uint col;
    // Range of K.
    uint k;
    uint k_end;
    // Which K split that range is.
    uint split;
    // False for a threadgroup with nothing to do; the same for all its threads.
    bool live;
};

// Tiles are walked in bands of eight rows of tiles, column by column within a band, so that
// threadgroups that run together share rows of A and columns of B in the cache. Each tile is met
// once: within a band the walk is column-major.
INLINE uint2 banded(uint i, constant Params &params) {
    const uint band_tiles = 8 * params.tiles_n;
    const uint first = i / band_tiles * 8;
    const uint height = min(params.tiles_m - first, 8u);
    const uint rest = i % band_tiles;
    return uint2(first + rest % height, rest / height);
}
