// The end of a mainloop that stores its result: four neighbouring columns of a row, of which those beyond the edge are dropped. The column is a
// multiple of 4, so an invocation owns every word of C that it writes.

fn store4(tile: Tile, row: u32, col: u32, sums: vec4<f32>) {
    if row >= tile.row_end || col >= params.n {
        return;
    }
    let n = min(params.n - col, 4u);
    var y = vec4<f32>();
    y.x = epilogue(tile.batch, tile.group, row, col, sums.x);
    if n > 1u { y.y = epilogue(tile.batch, tile.group, row, col + 1u, sums.y); }
    if n > 2u { y.z = epilogue(tile.batch, tile.group, row, col + 2u, sums.z); }
    if n > 3u { y.w = epilogue(tile.batch, tile.group, row, col + 3u, sums.w); }
    c_store4(c_index(tile.batch, row, col), n, y);
}
