// Replaces all_k.wgsl if entries are ranges of K of one matrix, whose lines lie across K. Each
// range has powers of its own, so that no number of another range decides about its digits. The
// products of a range are added by themselves and multiplied by the powers of that range, so the
// powers of two ranges never meet in a sum. A range of the copy is the lines from its first step to
// its last, one after the other. The last range also has the rest of the copy, which is filled with
// zeros. Every line of the copy is thus written once:
//
//     K       | range 0     | range 1   | range 2        | no range
//     lines   | 0 1 2 3 4   | 5 6 7     | 8 9 10 11      | 12 13 14 15
//     copy    | by entry 0  | entry 1   | entry 2: numbers, then zeros
//             ^ to = 0      ^ to = 5·ld ^ to = 8·ld                    ^ c_batch
//
// needs: Sharing k_range params
// provides: sharing_of

fn sharing_of(entry: u32) -> Sharing {
    let range = k_range(entry, 0u);
    let to = range.x * params.c_ld;
    let end = select(range.y * params.c_ld, params.c_batch, entry + 1u == params.entries);
    return Sharing(range.x, to, range.y - range.x, end - to);
}
