//! AWQ, its layout `gemm`: codes of 4 bits in words along N, `qweight` `[K, N / 8]`; `scales` `[G,
//! N]`; zeros like codes, `qzeros` `[G, N / 8]`.

use crate::import::word;
use std::ops::Range;

/// The column, of eight, that each nibble of a word holds.
const COLUMNS: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];
/// The nibble of each column.
const NIBBLES: [usize; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

/// Bits of a code, and K.
pub(crate) fn shape(
    rows: usize,
    columns: usize,
    n: usize,
    zero_columns: usize,
) -> Result<(u32, usize), String> {
    if columns.checked_mul(8) != Some(n) || zero_columns != columns {
        let text = format!("N = {n} with {columns} words of codes and {zero_columns} of zeros");
        return Err(format!("{text} is neither GPTQ nor AWQ of 4 bits"));
    }
    if !rows.is_multiple_of(8) {
        return Err(format!("K = {rows} is no multiple of 8"));
    }
    Ok((4, rows))
}

/// The zero of a group and column.
pub(crate) fn zero(qzeros: &[u8], at: usize) -> u32 {
    // Rows of N are whole words.
    word(qzeros, at / 8) >> (4 * NIBBLES[at % 8]) & 15
}

/// The codes of some columns of the file, a multiple of 8 from a multiple of 8, as rows of words
/// along K.
pub(crate) fn transpose(qweight: &[u8], n: usize, rows: Range<usize>, out: &mut [u8]) {
    let words = out.len() / 4 / rows.len();
    for w in 0..words {
        for (eight, first) in rows.clone().step_by(8).enumerate() {
            let lines: [u32; 8] =
                std::array::from_fn(|j| word(qweight, (8 * w + j) * (n / 8) + first / 8));
            for (nibble, column) in COLUMNS.into_iter().enumerate() {
                let code = |j: usize| (lines[j] >> (4 * nibble) & 15) << (4 * j);
                let made = (0..8).fold(0, |made, j| made | code(j));
                let to = 4 * ((8 * eight + column) * words + w);
                out[to..to + 4].copy_from_slice(&made.to_le_bytes());
            }
        }
    }
}
