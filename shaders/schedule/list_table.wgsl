// Products of a list that have their own tiles alone: a pass before has counted them
// (mainloop/group_table.wgsl).
// needs: given group_beyond group_table
// provides: product_of

// The product of a workgroup, and which of its tiles the workgroup has.
fn product_of(id: u32) -> vec2<u32> {
    let product = group_beyond(given.entries, id, 1u);
    var before = 0u;
    if product > 0u {
        before = group_table[product - 1u].y;
    }
    return vec2<u32>(product, id - before);
}
