// The tile that a schedule gives to a workgroup, for its mainloop to compute.
// needs: params
// offers: Owner Tile banded divided

struct Tile {
    // Entry of A, C and the residual.
    batch: u32,
    // Entry of B and the bias: the batch entry, or the group.
    group: u32,
    // First row and column, and the end of the rows. Columns end at params.n.
    row: u32,
    row_end: u32,
    col: u32,
    // Range of K.
    k: u32,
    k_end: u32,
    // Which K split that range is.
    split: u32,
    // False for a workgroup with nothing to do; the same for all its invocations.
    live: bool,
}

// The entry of B that a row of C belongs to, if it belongs to one.
struct Owner {
    group: u32,
    live: bool,
}

// Quotient and remainder. NVIDIA's driver makes some twenty operations of a division, each of which
// waits for the one before. Most products need none: they have one entry, one split of K or one row
// of tiles.
fn divided(i: u32, by: u32) -> vec2<u32> {
    var parts: vec2<u32>;
    if i < by {
        parts = vec2<u32>(0u, i);
    } else {
        if by == 1u {
            parts = vec2<u32>(i, 0u);
        } else {
            let quotient = i / by;
            parts = vec2<u32>(quotient, i - quotient * by);
        }
    }
    return parts;
}

// Tiles are walked in bands of eight rows of tiles, column by column within a band, so that
// workgroups that run together share rows of A and columns of B in the cache. Each tile is met
// once: within a band the walk is column-major.
fn banded(i: u32, tiles_m: u32) -> vec2<u32> {
    let band = divided(i, 8u * params.tiles_n);
    let first = band.x * 8u;
    let at = divided(band.y, min(tiles_m - first, 8u));
    return vec2<u32>(first + at.y, at.x);
}
