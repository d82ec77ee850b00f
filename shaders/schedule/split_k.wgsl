// Every entry has all of K, in splits.
// needs: params
// offers: k_range

fn k_range(entry: u32, split: u32) -> vec2<u32> {
    let start = split * params.k_split;
    return vec2<u32>(start, min(start + params.k_split, params.k));
}
