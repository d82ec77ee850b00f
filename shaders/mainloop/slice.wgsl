// A slice of an operand, X_TILE long and BK deep, on its way through registers into workgroup memory. An invocation carries whole 4×4
// blocks, so that each vector of the slice has one writer even where the storage runs along K and the block is turned.

const X_QUADS: u32 = X_TILE / 4u;
const X_DEPTH: u32 = BK / 4u;
const X_BLOCKS: u32 = X_QUADS * X_DEPTH;
const X_FETCHES: u32 = (X_BLOCKS + THREADS - 1u) / THREADS;

var<workgroup> x_slice: array<vec4<f32>, X_QUADS * BK>;

// The vector of elements (4 quad .. 4 quad + 3, k) lies at k · X_QUADS + x_swizzled(quad, k). Invocations that are neighbours along K write rows of
// the slice that lie a multiple of all memory banks apart; exchanging vectors within groups of eight, differently for each block along K, spreads
// them again.
fn x_swizzled(quad: u32, k: u32) -> u32 {
    if X_K_CONTIGUOUS {
        return quad ^ (k / 4u % 4u * 2u);
    }
    return quad;
}

// Quad and first k of a block: neighbouring invocations lie along the storage, so that they read neighbouring addresses.
fn x_place(block: u32) -> vec2<u32> {
    if X_K_CONTIGUOUS {
        return vec2<u32>(block / X_DEPTH, block % X_DEPTH * 4u);
    }
    return vec2<u32>(block % X_QUADS, block / X_QUADS * 4u);
}

// This invocation's blocks of the slice that starts at (x, k).
fn x_fetch(thread: u32, base: u32, x: u32, x_end: u32, k: u32, k_end: u32) -> array<mat4x4<f32>, X_FETCHES> {
    var fetched = array<mat4x4<f32>, X_FETCHES>();
    for (var i = 0u; i < X_FETCHES; i += 1u) { //unroll
        let block = thread + i * THREADS;
        if block < X_BLOCKS {
            let place = x_place(block);
            fetched[i] = x_block(base, x + place.x * 4u, x_end, k + place.y, k_end);
        }
    }
    return fetched;
}

fn x_put(thread: u32, fetched: array<mat4x4<f32>, X_FETCHES>) {
    for (var i = 0u; i < X_FETCHES; i += 1u) { //unroll
        let block = thread + i * THREADS;
        if block < X_BLOCKS {
            let place = x_place(block);
            let at = place.y * X_QUADS + x_swizzled(place.x, place.y);
            x_slice[at] = fetched[i][0];
            x_slice[at + X_QUADS] = fetched[i][1];
            x_slice[at + 2u * X_QUADS] = fetched[i][2];
            x_slice[at + 3u * X_QUADS] = fetched[i][3];
        }
    }
}
