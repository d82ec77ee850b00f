// In place of all_k.wgsl where entries are ranges of K of one matrix, whose lines lie across K:
// each range has powers for itself, so that no number of another decides about its digits. The last
// one has the rest of the copy, too, which is filled with zeros.
// needs: Sharing k_range params
// provides: sharing_of

fn sharing_of(entry: u32) -> Sharing {
    let range = k_range(entry, 0u);
    let to = range.x * params.c_ld;
    let end = select(range.y * params.c_ld, params.c_batch, entry + 1u == params.entries);
    return Sharing(range.x, to, range.y - range.x, end - to);
}
