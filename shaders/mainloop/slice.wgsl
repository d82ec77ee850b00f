// A slice of an operand, X_TILE long and BK deep, on its way through registers into workgroup memory, as vectors of four elements along x for
// each k. An invocation carries four vectors at a time, so that each has one writer, and neighbouring invocations read neighbouring addresses:
// - vector loaders: a 4×4 block of neighbours, turned in registers where the storage runs along K;
// - single-element loaders: each of the sixteen elements beside the neighbour's. A vector then holds x, x + X_QUADS, x + 2 X_QUADS, x + 3 X_QUADS.

const X_SCALAR: bool = false; //param

const X_QUADS: u32 = X_TILE / 4u;
const X_DEPTH: u32 = BK / 4u;
const X_BLOCKS: u32 = X_QUADS * X_DEPTH;
const X_FETCHES: u32 = (X_BLOCKS + THREADS - 1u) / THREADS;

var<workgroup> x_slice: array<vec4<f32>, X_QUADS * BK>;

// Position along x within the tile of a component of a vector.
fn x_of(quad: u32, component: u32) -> u32 {
    return select(quad * 4u + component, quad + component * X_QUADS, X_SCALAR);
}

// The vector (quad, k) lies at k · X_QUADS + x_swizzled(quad, k). Where neighbouring invocations write rows of the slice that lie a multiple of all
// memory banks apart, exchanging vectors within groups of eight, differently from row to row, spreads them again.
fn x_swizzled(quad: u32, k: u32) -> u32 {
    if !X_K_CONTIGUOUS {
        return quad;
    }
    return quad ^ select(k / 4u % 4u * 2u, k % 8u, X_SCALAR);
}

// Quad and k of the i-th vector of a block.
fn x_place(block: u32, i: u32) -> vec2<u32> {
    if !X_K_CONTIGUOUS {
        return vec2<u32>(block % X_QUADS, block / X_QUADS * 4u + i);
    }
    if X_SCALAR {
        return vec2<u32>(block / BK + i * (X_QUADS / 4u), block % BK);
    }
    return vec2<u32>(block / X_DEPTH, block % X_DEPTH * 4u + i);
}

// A vector of single elements; what lies at or beyond x_end or k_end is 0 and never read.
fn x_gather(base: u32, x: u32, x_end: u32, k: u32, k_end: u32) -> vec4<f32> {
    var v = vec4<f32>();
    if k >= k_end {
        return v;
    }
    if x + 3u * X_QUADS < x_end {
        return vec4<f32>(
            x_at(base, x, k),
            x_at(base, x + X_QUADS, k),
            x_at(base, x + 2u * X_QUADS, k),
            x_at(base, x + 3u * X_QUADS, k),
        );
    }
    if x < x_end { v.x = x_at(base, x, k); }
    if x + X_QUADS < x_end { v.y = x_at(base, x + X_QUADS, k); }
    if x + 2u * X_QUADS < x_end { v.z = x_at(base, x + 2u * X_QUADS, k); }
    return v;
}

fn x_fetch_block(block: u32, base: u32, x: u32, x_end: u32, k: u32, k_end: u32) -> mat4x4<f32> {
    let p = x_place(block, 0u);
    if !X_SCALAR {
        return x_block(base, x + p.x * 4u, x_end, k + p.y, k_end);
    }
    let q = x_place(block, 1u);
    let r = x_place(block, 2u);
    let s = x_place(block, 3u);
    return mat4x4<f32>(
        x_gather(base, x + p.x, x_end, k + p.y, k_end),
        x_gather(base, x + q.x, x_end, k + q.y, k_end),
        x_gather(base, x + r.x, x_end, k + r.y, k_end),
        x_gather(base, x + s.x, x_end, k + s.y, k_end),
    );
}

// This invocation's blocks of the slice that starts at (x, k).
fn x_fetch(thread: u32, base: u32, x: u32, x_end: u32, k: u32, k_end: u32) -> array<mat4x4<f32>, X_FETCHES> {
    var fetched: array<mat4x4<f32>, X_FETCHES>;
    for (var i = 0u; i < X_FETCHES; i += 1u) {
        let block = thread + i * THREADS;
        if block < X_BLOCKS {
            fetched[i] = x_fetch_block(block, base, x, x_end, k, k_end);
        }
    }
    return fetched;
}

fn x_put_vector(block: u32, i: u32, v: vec4<f32>) {
    let p = x_place(block, i);
    x_slice[p.y * X_QUADS + x_swizzled(p.x, p.y)] = v;
}

fn x_put(thread: u32, fetched: array<mat4x4<f32>, X_FETCHES>) {
    var blocks = fetched;
    for (var i = 0u; i < X_FETCHES; i += 1u) {
        let block = thread + i * THREADS;
        if block < X_BLOCKS {
            x_put_vector(block, 0u, blocks[i][0]);
            x_put_vector(block, 1u, blocks[i][1]);
            x_put_vector(block, 2u, blocks[i][2]);
            x_put_vector(block, 3u, blocks[i][3]);
        }
    }
}
