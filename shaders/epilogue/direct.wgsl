// The end of a mainloop that stores its result: up to four neighbouring columns of a row. Columns
// beyond the edge are dropped. The first column is a multiple of 4, or of C_STEP if the mainloop
// stores as many. So an invocation owns every word of C that it writes.
// needs: C_PER Tile a_summed c_index c_store4 epilogue params
// offers: store

fn store(tile: Tile, row: u32, col: u32, columns: u32, sums: vec4<f32>) {
    if row >= tile.row_end || col >= params.n {
        return;
    }
    let n = min(params.n - col, columns);
    let own = a_summed(row, sums);
    let y = epilogue(tile.batch, tile.group, row, col, n, own);
    c_store4(c_index(tile.batch, row, col), n / C_PER, y);
}
