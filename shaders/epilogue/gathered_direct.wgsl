// The end of a mainloop that stores its result (direct.wgsl), for rows by index. A row that does
// not exist sums to 0.
// needs: Tile a_exists c_index c_store4 epilogue params
// provides: store

fn store(tile: Tile, row: u32, col: u32, columns: u32, sums: vec4<f32>) {
    if row >= tile.row_end || col >= params.n {
        return;
    }
    let n = min(params.n - col, columns);
    let own = select(vec4<f32>(), sums, a_exists(row));
    c_store4(c_index(tile.batch, row, col), n, epilogue(tile.batch, tile.group, row, col, n, own));
}
