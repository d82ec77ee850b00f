// Every entry has its first rows: as many as its count on the device says, or all if that is beyond
// M.
//
// A pass may compute only a range of the rows and of the entries. Its rows and entries count from
// the start of the range, the counts in the buffer from that of the whole.
// needs: params
// provides: row_counts row_end

@group(0) @binding(6) var<storage, read> row_counts: array<u32>;

fn row_end(entry: u32) -> u32 {
    let own = row_counts[params.row_offset + params.first_group + entry];
    return min(max(own, params.first_row) - params.first_row, params.m);
}
