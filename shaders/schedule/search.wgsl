// A search in a table of groups.
// needs: nothing
// offers: group_beyond group_table

// The end of the rows and of the tiles of each group.
@group(0) @binding(10) var<storage, read> group_table: array<vec2<u32>>;

// The first of `groups` groups that ends behind a row (`by` is 0) or a tile (1); their number if
// none does.
fn group_beyond(groups: u32, place: u32, by: u32) -> u32 {
    var low = 0u;
    var high = groups;
    while low < high {
        let middle = low + (high - low) / 2u;
        if group_table[middle][by] > place {
            high = middle;
        } else {
            low = middle + 1u;
        }
    }
    return low;
}
