// The elements that an invocation takes in one step of gemv: X_TILE elements along the tile, eight
// along K, as eights along the storage.
// needs: X_Eight X_K_CONTIGUOUS X_TILE params x_line x_load8
// provides: X_ALONG_K X_EIGHTS X_LOADS X_WIDTH x_strip x_strip_masked x_whole

const X_ALONG_K: u32 = 1u; //param

// Eights that lie side by side along the tile, if the storage does.
const X_EIGHTS: u32 = (X_TILE + 7u) / 8u;
const X_LOADS: u32 = X_ALONG_K * X_TILE + (1u - X_ALONG_K) * 8u * X_EIGHTS;
// Elements that are wanted of each of them.
const X_WIDTH: u32 = X_TILE / X_EIGHTS;

// Whether no element of the strip, or only lines that `x_strip` repeats, lie at or beyond x_end.
fn x_whole(x: u32, x_end: u32) -> bool {
    return X_K_CONTIGUOUS || x + X_TILE <= x_end;
}

// The strip at (x, k), whole along K. Lines from x_end on repeat the last: nothing is stored of
// what they give, and a branch would make the driver wait for the loads behind it.
fn x_strip(base: u32, x: u32, x_end: u32, k: u32) -> array<X_Eight, X_LOADS> {
    var strip = array<X_Eight, X_LOADS>();
    for (var i = 0u; i < X_LOADS; i += 1u) { //unroll
        if X_K_CONTIGUOUS {
            strip[i] = x_load8(base + x_line(min(x + i, x_end - 1u)) * params.x_ld + k, 8u);
        } else {
            strip[i] =
                x_load8(base + (k + i / X_EIGHTS) * params.x_ld + x + i % X_EIGHTS * 8u, X_WIDTH);
        }
    }
    return strip;
}

// The strip at (x, k); what lies at or beyond k_end or, across K, x_end is 0 and never read.
fn x_strip_masked(base: u32, x: u32, x_end: u32, k: u32, k_end: u32) -> array<X_Eight, X_LOADS> {
    var strip = array<X_Eight, X_LOADS>();
    for (var i = 0u; i < X_LOADS; i += 1u) { //unroll
        if X_K_CONTIGUOUS {
            strip[i] = x_load8(base + x_line(min(x + i, x_end - 1u)) * params.x_ld + k,
                min(k_end - k, 8u));
        } else {
            let line = k + i / X_EIGHTS;
            let first = x + i % X_EIGHTS * 8u;
            let n = min(max(x_end, first) - first, X_WIDTH);
            strip[i] = x_load8(base + line * params.x_ld + first, select(0u, n, line < k_end));
        }
    }
    return strip;
}
