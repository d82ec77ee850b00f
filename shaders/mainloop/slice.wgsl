// A slice of an operand, X_TILE long and BK deep, on its way through registers into workgroup memory. An invocation carries whole 4×4
// blocks, so that each vector of the slice has one writer even where the storage runs along K and the block is turned.

const X_QUADS: u32 = X_TILE / 4u;
const X_BLOCKS: u32 = X_QUADS * BK / 4u;
const X_FETCHES: u32 = (X_BLOCKS + THREADS - 1u) / THREADS;

// Element (x, k) is component x % 4 of vector k · X_QUADS + x / 4.
var<workgroup> x_slice: array<vec4<f32>, X_QUADS * BK>;

// This invocation's blocks of the slice that starts at (x, k).
fn x_fetch(thread: u32, base: u32, x: u32, x_end: u32, k: u32, k_end: u32) -> array<mat4x4<f32>, X_FETCHES> {
    var fetched: array<mat4x4<f32>, X_FETCHES>;
    for (var i = 0u; i < X_FETCHES; i += 1u) {
        let block = thread + i * THREADS;
        if block < X_BLOCKS {
            fetched[i] = x_block(base, x + block % X_QUADS * 4u, x_end, k + block / X_QUADS * 4u, k_end);
        }
    }
    return fetched;
}

fn x_put(thread: u32, fetched: array<mat4x4<f32>, X_FETCHES>) {
    var blocks = fetched;
    for (var i = 0u; i < X_FETCHES; i += 1u) {
        let block = thread + i * THREADS;
        if block < X_BLOCKS {
            let at = block / X_QUADS * 4u * X_QUADS + block % X_QUADS;
            x_slice[at] = blocks[i][0];
            x_slice[at + X_QUADS] = blocks[i][1];
            x_slice[at + 2u * X_QUADS] = blocks[i][2];
            x_slice[at + 3u * X_QUADS] = blocks[i][3];
        }
    }
}
