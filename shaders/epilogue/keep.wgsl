// The end of a finishing pass that does not bind the residual beside everything else: it leaves the
// rest of the epilogue in scratch, where the first K split was, for another finishing pass.
// needs: Tile epilogue params
// provides: partial_sums store

@group(0) @binding(9) var<storage, read_write> partial_sums: array<vec4<f32>>;

fn store(tile: Tile, row: u32, col: u32, columns: u32, sums: vec4<f32>) {
    let n = min(params.n - col, columns);
    let at = (tile.batch * params.m + row) * ((params.n + 3u) / 4u) + col / 4u;
    partial_sums[at] = epilogue(tile.batch, tile.group, row, col, n, sums);
}
