// The end of a mainloop that leaves the rest to a finishing pass: f32 sums to scratch [split][batch][M][N], nothing applied.

@group(0) @binding(9) var<storage, read_write> partial_sums: array<f32>;

fn store4(tile: Tile, row: u32, col: u32, sums: vec4<f32>) {
    if row >= tile.row_end || col >= params.n {
        return;
    }
    let copies = c_entries();
    let at = (((params.first_part + tile.split) * copies + tile.batch) * params.m + row) * params.n + col;
    let n = min(params.n - col, 4u);
    partial_sums[at] = sums.x;
    if n > 1u { partial_sums[at + 1u] = sums.y; }
    if n > 2u { partial_sums[at + 2u] = sums.z; }
    if n > 3u { partial_sums[at + 3u] = sums.w; }
}
