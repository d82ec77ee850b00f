// Schedule: products of any sizes, each at its places in one storage for all of A, of B and of C,
// with nine numbers of each on the device: M, N and K; then place and row stride of A, of B and of
// C.
//
// Over-launch: as many tiles for each as the largest would have. Sizes beyond those of the pass are
// cut. A product that would leave a storage, or whose rows of C overlap, has no tile, so that
// nothing outside is touched whatever the buffer holds.
//
// Every file finds the numbers of its tile's product in `params`, where those of a pass are
// otherwise: this file puts there what mainloops of single elements and the epilogue read. All that
// decides about a barrier comes from the pass and the buffer.
// needs: A_K_CONTIGUOUS BM BN B_K_CONTIGUOUS Params Tile
// provides: given is_inside linear_id list params schedule

@group(0) @binding(0) var<uniform> given: Params;
@group(0) @binding(6) var<storage, read> list: array<u32>;

var<private> params: Params;

// Grids are linearised, because one dimension ends at 65,535 workgroups.
fn linear_id(workgroup: vec3<u32>) -> u32 {
    return workgroup.y * given.grid_x + workgroup.x;
}

// Whether a matrix [rows, columns] lies within so many elements; its lines run along the columns or
// along the rows.
fn is_inside(at: u32, ld: u32, rows: u32, columns: u32, along_rows: bool, elements: u32) -> bool {
    let lines = select(rows, columns, along_rows);
    let width = select(columns, rows, along_rows);
    if lines == 0u || width == 0u {
        return true;
    }
    if width > elements || at > elements - width {
        return false;
    }
    return lines == 1u || ld <= (elements - width - at) / (lines - 1u);
}

fn schedule(id: u32) -> Tile {
    var tile = Tile();
    let grid = given.tiles_m * given.tiles_n;
    let entry = id / grid;
    if entry >= given.entries {
        return tile;
    }
    let first = given.row_offset + entry * 9u;
    let m = min(list[first], given.m);
    let n = min(list[first + 1u], given.n);
    let k = min(list[first + 2u], given.k);
    tile.row = id % grid / given.tiles_n * BM;
    tile.col = id % given.tiles_n * BN;
    let a = vec2<u32>(list[first + 3u], list[first + 4u]);
    let b = vec2<u32>(list[first + 5u], list[first + 6u]);
    let c = vec2<u32>(list[first + 7u], list[first + 8u]);
    if tile.row >= m || tile.col >= n || m > 1u && c.y < n
        || !is_inside(a.x, a.y, m, k, !A_K_CONTIGUOUS, given.a_batch)
        || !is_inside(b.x, b.y, k, n, B_K_CONTIGUOUS, given.b_batch)
        || !is_inside(c.x, c.y, m, n, false, given.c_batch) {
        return tile;
    }
    tile.live = true;
    tile.row_end = m;
    tile.k_end = k;
    params = Params();
    params.n = n;
    params.alpha = given.alpha;
    params.beta = given.beta;
    params.a_offset = given.a_offset + a.x;
    params.b_offset = given.b_offset + b.x;
    params.c_offset = given.c_offset + c.x;
    params.a_ld = a.y;
    params.b_ld = b.y;
    params.c_ld = c.y;
    return tile;
}
