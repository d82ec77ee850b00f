// Every row or column of a table, in their order.
// needs: nothing
// offers: x_index

fn x_index(i: u32) -> u32 {
    return i;
}
