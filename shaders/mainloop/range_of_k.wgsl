// Replaces all_k.wgsl if entries are ranges of K of one matrix, whose lines lie across K. Each
// range has powers of its own, so that no number of another range decides about its digits. A range
// of the copy is the lines from its first step to its last, one after the other. The last range
// also has the rest of the copy, which is filled with zeros.
// needs: Sharing k_range params
// provides: sharing_of

fn sharing_of(entry: u32) -> Sharing {
    let range = k_range(entry, 0u);
    let to = range.x * params.c_ld;
    let end = select(range.y * params.c_ld, params.c_batch, entry + 1u == params.entries);
    return Sharing(range.x, to, range.y - range.x, end - to);
}
