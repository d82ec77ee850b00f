// Every entry has all rows.
// needs: params
// provides: row_end

fn row_end(entry: u32) -> u32 {
    return params.m;
}
