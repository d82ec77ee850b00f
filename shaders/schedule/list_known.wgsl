// Products of a list from the host, which put tables of their tiles behind the numbers: for each
// shape of tiles, how many there are up to each product.
// needs: given list
// provides: TABLE product_of

// The number of the table for tiles of this shape.
const TABLE: u32 = 0u; //param

// The product of a workgroup, and which of its tiles the workgroup has.
fn product_of(id: u32) -> vec2<u32> {
    let first = given.row_offset + (9u + TABLE) * given.entries;
    var before = 0u;
    var low = 0u;
    var high = given.entries;
    while low < high {
        let middle = low + (high - low) / 2u;
        let end = list[first + middle];
        if end > id {
            high = middle;
        } else {
            low = middle + 1u;
            before = end;
        }
    }
    return vec2<u32>(low, id - before);
}
