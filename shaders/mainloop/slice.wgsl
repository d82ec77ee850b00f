// A slice of an operand, X_TILE long and BK deep, on its way through registers into workgroup
// memory. An invocation carries one 4×4 block at most, so that each vector of the slice has one
// writer even if the storage runs along K and the block is turned.
// needs: BK THREADS X_K_CONTIGUOUS X_TILE params x_block x_decode4 x_fetch4 x_line4 x_raw4
// offers: X_BLOCKS X_DEPTH X_QUADS x_Lines x_decode x_fetch x_first x_has x_lines x_place x_put
//        x_slice x_swizzled

const X_QUADS: u32 = X_TILE / 4u;
const X_DEPTH: u32 = BK / 4u;
const X_BLOCKS: u32 = X_QUADS * X_DEPTH;
const_assert X_BLOCKS <= THREADS;

var<workgroup> x_slice: array<vec4<f32>, X_QUADS * BK>;

// The vector of elements (4 quad .. 4 quad + 3, k) lies at k · X_QUADS + x_swizzled(quad, k).
// Invocations that are neighbours along K write rows of the slice that lie a multiple of all memory
// banks apart; exchanging vectors within groups of eight, differently for each block along K,
// spreads them again.
fn x_swizzled(quad: u32, k: u32) -> u32 {
    if X_K_CONTIGUOUS {
        return quad ^ (k / 4u * (8u / X_DEPTH));
    }
    return quad;
}

// Quad and first k of a block: neighbouring invocations lie along the storage, so that they read
// neighbouring addresses.
fn x_place(block: u32) -> vec2<u32> {
    if X_K_CONTIGUOUS {
        return vec2<u32>(block / X_DEPTH, block % X_DEPTH * 4u);
    }
    return vec2<u32>(block % X_QUADS, block / X_QUADS * 4u);
}

// Whether an invocation carries a block. A driver need not know that there are no more invocations
// than THREADS.
fn x_has(block: u32) -> bool {
    return X_BLOCKS == THREADS || block < X_BLOCKS;
}

// Where the lines of a block lie, in a slice that starts at k = 0, and how many elements of each
// exist at least.
struct x_Lines {
    at: vec4<u32>,
    n: u32,
}

// The lines of a block in a slice that is whole along K. Lines and elements before x_end are read
// in place of those beyond: their sums belong to no element of C.
fn x_lines(block: u32, base: u32, x: u32, x_end: u32) -> x_Lines {
    let place = x_place(block);
    let last = x_end - 1u - x;
    let first = x + min(place.x * 4u, last / 4u * 4u);
    let ld = params.x_ld;
    if X_K_CONTIGUOUS {
        return x_Lines(base + x_line4(first, x_end) * ld + place.y, 4u);
    }
    return x_Lines(base + first + (place.y + vec4<u32>(0u, 1u, 2u, 3u)) * ld, x_end - first);
}

// The block's lines in the slice that starts at k, as they are stored: turned into numbers here,
// they would be waited for.
fn x_fetch(lines: x_Lines, k: u32) -> array<x_raw4, 4> {
    let at = lines.at + select(k * params.x_ld, k, X_K_CONTIGUOUS);
    return array<x_raw4, 4>(
        x_fetch4(at.x, lines.n), x_fetch4(at.y, lines.n),
        x_fetch4(at.z, lines.n), x_fetch4(at.w, lines.n));
}

fn x_decode(raw: array<x_raw4, 4>) -> mat4x4<f32> {
    let lines =
        mat4x4<f32>(x_decode4(raw[0]), x_decode4(raw[1]), x_decode4(raw[2]), x_decode4(raw[3]));
    if X_K_CONTIGUOUS {
        return transpose(lines);
    }
    return lines;
}

fn x_put(block: u32, values: mat4x4<f32>) {
    let place = x_place(block);
    let at = place.y * X_QUADS + x_swizzled(place.x, place.y);
    x_slice[at] = values[0];
    x_slice[at + X_QUADS] = values[1];
    x_slice[at + 2u * X_QUADS] = values[2];
    x_slice[at + 3u * X_QUADS] = values[3];
}

// The block in the first slice, which need not be whole along K.
fn x_first(block: u32, base: u32, x: u32, x_end: u32, k: u32, k_end: u32) -> mat4x4<f32> {
    let place = x_place(block);
    return x_block(base, x + place.x * 4u, x_end, k + place.y, k_end);
}
