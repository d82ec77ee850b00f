// For passes that divide lines of an operand by powers of two: each entry has powers for all of K.
// needs: Sharing params
// offers: sharing_of

fn sharing_of(entry: u32) -> Sharing {
    return Sharing(0u, entry * params.c_batch, params.k, params.c_batch);
}
