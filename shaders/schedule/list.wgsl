// Schedule: products of any sizes, each at its places in one storage for all of A, of B and of C,
// with nine numbers of each on the device: M, N and K; then place and row stride of A, of B and of
// C.
//
// Sizes beyond those of the pass are cut. A product that would leave a storage, or whose rows of C
// overlap, has no tile, so that nothing outside is touched whatever the buffer holds. Nor has a
// product whose places or row strides in A or B are no multiples of the pass's row stride there:
// mainloops may read vectors of that length.
//
// Every file reads `params`, which elsewhere are the numbers of a pass. Here they are those of the
// tile's product: this file puts there what mainloops and the epilogue read. All that decides about
// a barrier comes from the pass and the buffer.
// needs: A_K_CONTIGUOUS BM BN B_K_CONTIGUOUS Params Tile divided product_of
// provides: given is_inside linear_id list params schedule

@group(0) @binding(0) var<uniform> given: Params;
@group(0) @binding(6) var<storage, read> list: array<u32>;

var<private> params: Params;

// Grids are linearised, because one dimension ends at 65,535 workgroups.
fn linear_id(workgroup: vec3<u32>) -> u32 {
    return workgroup.y * given.grid_x + workgroup.x;
}

// Whether a matrix [lines, width] lies within `elements`, and its place and its row stride are
// multiples of `step`.
fn is_inside(place: vec2<u32>, lines: u32, width: u32, elements: u32, step: u32) -> bool {
    var inside = lines == 0u || width == 0u;
    if !inside {
        let outside = width > elements || place.x > elements - width || place.x % step != 0u;
        let last = (elements - width - place.x) / max(lines - 1u, 1u);
        inside = !outside && (lines == 1u || (place.y <= last && place.y % step == 0u));
    }
    return inside;
}

fn schedule(id: u32, thread: u32) -> Tile {
    var tile = Tile();
    params = Params();
    let at = product_of(id);
    if at.x < given.entries {
        let first = given.row_offset + at.x * 9u;
        let m = min(list[first], given.m);
        let n = min(list[first + 1u], given.n);
        let k = min(list[first + 2u], given.k);
        let place = divided(at.y, max((n + BN - 1u) / BN, 1u));
        tile.row = place.x * BM;
        tile.col = place.y * BN;
        let a = vec2<u32>(list[first + 3u], list[first + 4u]);
        let b = vec2<u32>(list[first + 5u], list[first + 6u]);
        let c = vec2<u32>(list[first + 7u], list[first + 8u]);
        let a_shape = select(vec2<u32>(k, m), vec2<u32>(m, k), A_K_CONTIGUOUS);
        let b_shape = select(vec2<u32>(k, n), vec2<u32>(n, k), B_K_CONTIGUOUS);
        if tile.row < m && tile.col < n && (m == 1u || c.y >= n)
            && is_inside(a, a_shape.x, a_shape.y, given.a_batch, given.a_ld)
            && is_inside(b, b_shape.x, b_shape.y, given.b_batch, given.b_ld)
            && is_inside(c, m, n, given.c_batch, 1u) {
            tile.live = true;
            tile.row_end = m;
            tile.k_end = k;
            params.n = n;
            params.alpha = given.alpha;
            params.beta = given.beta;
            // Without K, A and B lie anywhere; matrix units read the first vector that is bound.
            params.a_offset = select(0u, given.a_offset + a.x, k > 0u);
            params.b_offset = select(0u, given.b_offset + b.x, k > 0u);
            params.c_offset = given.c_offset + c.x;
            params.a_ld = a.y;
            params.b_ld = b.y;
            params.c_ld = c.y;
        }
    }
    return tile;
}
