// A slice of an operand for matrix units, X_TILE long and BK deep, on its way through registers
// into workgroup memory. It keeps the direction of the storage: lines along K or along the tile,
// PAD elements apart so that the rows of a matrix lie in different memory banks.
// needs: AHEAD BK Element PAD RANGES THREADS VECTOR X_K_CONTIGUOUS X_Matrix X_SPAN X_TILE X_Words
//        params step_of step_within within x_at x_elements x_line x_words
// provides: X_ALONG_K X_FETCHES X_LD X_LINES X_LOADS X_PART X_ROW_MAJOR X_WIDTH x_fetch x_fetch_all
//        x_matrix x_panel x_place x_place_all x_put x_put_all

const X_ALONG_K: u32 = 1u; //param
const X_ROW_MAJOR: bool = true; //param

const X_LINES: u32 = X_ALONG_K * X_TILE + (1u - X_ALONG_K) * BK;
const X_WIDTH: u32 = X_ALONG_K * BK + (1u - X_ALONG_K) * X_TILE;
// Distance of lines, in vectors of four elements.
const X_LD: u32 = (X_WIDTH + PAD) / 4u;
// Loads of a line, each of as many elements as the loader reads at once.
const X_LOADS: u32 = X_WIDTH / X_SPAN;
const X_FETCHES: u32 = X_LINES * X_LOADS / THREADS;
// Every invocation has as many loads as any other, and lines come in eights.
const_assert X_FETCHES * THREADS == X_LINES * X_LOADS;
const_assert X_LINES % 8u == 0u;

var<workgroup> x_panel: array<vec4<Element>, X_LINES * X_LD>;

// Line and first element of a load. Lines of four loads of 16 bytes are met in the order 0 4 1 5 2
// 6 3 7, so that eight invocations, which write to workgroup memory together, write two lines that
// lie in different banks.
fn x_place(load: u32) -> vec2<u32> {
    let line = load / X_LOADS;
    let at = load % X_LOADS * X_SPAN;
    if X_LOADS == 4u && X_SPAN == VECTOR {
        return vec2<u32>(line / 8u * 8u + line % 2u * 4u + line / 2u % 4u, at);
    }
    return vec2<u32>(line, at);
}

// This invocation's loads of the slice that starts at (x, k), in a range of K that ends at k_end.
// Beyond the end of the tile, or of a range that ends inside the slice, the last line, or the last
// vector, is read again: no element of C comes from it, and a branch here would make the driver
// wait for the loads at its end. (A product of a list without K has no lines to read.)
fn x_fetch(
    thread: u32,
    base: u32,
    x: u32,
    x_end: u32,
    k: u32,
    k_end: u32,
    loads: u32,
) -> array<X_Words, X_FETCHES> {
    var fetched = array<X_Words, X_FETCHES>();
    let last = select(x_end - 1u, 0u, RANGES && k_end == 0u);
    for (var i = 0u; i < X_FETCHES; i += 1u) { //unroll
        if i < loads {
            let place = x_place(thread + i * THREADS);
            if X_K_CONTIGUOUS {
                let line = x_line(min(x + place.x, last));
                // Lines beyond the end read one vector, which costs less than a line for each.
                let own = select(place.y, 0u, x + place.x > last);
                let step = step_within(k + step_of(own), k_end, X_SPAN);
                fetched[i] = x_words(base + x_at(line, step, params.x_ld));
            } else {
                fetched[i] = x_words(base
                    + step_within(k + step_of(place.x), k_end, 1u) * params.x_ld
                    + min(x + place.y, last / X_SPAN * X_SPAN));
            }
        }
    }
    return fetched;
}

// Stores the loads of the slice that starts at k.
fn x_put(
    thread: u32,
    fetched: array<X_Words, X_FETCHES>,
    k: u32,
    range: vec2<u32>,
    loads: u32,
) {
    for (var i = 0u; i < X_FETCHES; i += 1u) { //unroll
        if i < loads {
            let place = x_place(thread + i * THREADS);
            for (var quad = 0u; quad < X_SPAN / 4u; quad += 1u) { //unroll
                let along_k = place.y + quad * 4u + vec4<u32>(0u, 1u, 2u, 3u);
                let steps = k + select(vec4<u32>(place.x), along_k, X_K_CONTIGUOUS);
                x_panel[place.x * X_LD + place.y / 4u + quad] =
                    within(x_elements(fetched[i], quad), steps, range);
            }
        }
    }
}

// Elements of each of AHEAD slices in a load that they share.
const X_PART: u32 = X_SPAN / AHEAD;

// Line and first element of load i of part f of what AHEAD slices share.
fn x_place_all(thread: u32, f: u32, i: u32) -> vec2<u32> {
    let load = thread + (f * X_FETCHES + i) * THREADS;
    return vec2<u32>(load / (AHEAD * X_LOADS), load % (AHEAD * X_LOADS) * X_SPAN);
}

// Loads part f, of AHEAD, of slices from k on.
fn x_fetch_all(
    thread: u32,
    base: u32,
    x: u32,
    x_end: u32,
    k: u32,
    f: u32,
) -> array<X_Words, X_FETCHES> {
    var fetched = array<X_Words, X_FETCHES>();
    for (var i = 0u; i < X_FETCHES; i += 1u) { //unroll
        let place = x_place_all(thread, f, i);
        let line = x_line(min(x + place.x, x_end - 1u));
        fetched[i] = x_words(base + line * params.x_ld + k + place.y);
    }
    return fetched;
}

// Stores what part f has of slice s.
fn x_put_all(thread: u32, fetched: array<X_Words, X_FETCHES>, f: u32, s: u32) {
    for (var i = 0u; i < X_FETCHES; i += 1u) { //unroll
        let place = x_place_all(thread, f, i);
        for (var quad = 0u; quad < X_PART / 4u; quad += 1u) { //unroll
            x_panel[place.x * X_LD + place.y / AHEAD / 4u + quad] =
                x_elements(fetched[i], s * (X_PART / 4u) + quad);
        }
    }
}

// The matrix that starts at (x, k) of the slice.
fn x_matrix(x: u32, k: u32) -> X_Matrix {
    let at = select(k * X_LD + x / 4u, x * X_LD + k / 4u, X_K_CONTIGUOUS);
    var matrix: X_Matrix;
    if X_ROW_MAJOR {
        matrix = coopLoadT<X_Matrix>(&x_panel[at], X_LD);
    } else {
        matrix = coopLoad<X_Matrix>(&x_panel[at], X_LD);
    }
    return matrix;
}
