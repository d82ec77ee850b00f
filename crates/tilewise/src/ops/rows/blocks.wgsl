// The header of texts in which an invocation has TURNS blocks of four elements of a row of `x` at a
// time, `reach` elements apart. Its neighbours have the blocks between these.

alias Blocks = array<vec4<f32>, TURNS>;

// The blocks from the `first` element on. Elements from `end` on are 0. The first block is read in
// their place, without a branch: all loads are under way at once.
fn blocks(at: u32, first: u32, reach: u32, step: u32, end: u32) -> Blocks {
    var v: Blocks;
    for (var turn = 0u; turn < TURNS; turn += 1u) { //unroll
        let i = first + turn * reach;
        let own = select(first, i, i < end);
        v[turn] = select(vec4<f32>(), x_get(at, own, step, min(4u, end - own)), vec4(i < end));
    }
    return v;
}
