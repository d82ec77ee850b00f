//! GPTQ: codes of 4 or 8 bits in words along K, `qweight` `[K · bits / 32, N]`; `scales` `[G, N]`;
//! zeros in words along N, `qzeros` `[G, N · bits / 32]`; and, for columns in any order, `g_idx`
//! `[K]`, the group of each.
//!
//! The first version stores a zero less 1. Adding the 1 gives up to 16 for 4 bits, as in AutoGPTQ.

use crate::import::word;
use std::ops::Range;

/// The columns of W in the order in which they are stored: by groups.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) columns: Vec<u32>,
}

/// Bits of a code, and K.
pub(crate) fn shape(rows: usize, n: usize, zero_columns: usize) -> Result<(u32, usize), String> {
    let bits = zero_columns as u128 * 32 / n as u128;
    if !matches!(bits, 4 | 8) || n as u128 * bits != zero_columns as u128 * 32 {
        return Err(format!(
            "N = {n} with {zero_columns} words of zeros is no GPTQ of 4 or 8 bits"
        ));
    }
    let per = 32 / bits as usize;
    // `g_idx` and the order of columns have numbers of 32 bits.
    let k = rows.checked_mul(per).filter(|&k| u32::try_from(k).is_ok());
    let k = k.ok_or_else(|| format!("K = {rows} · {per}; at most {} is read", u32::MAX))?;
    Ok((bits as u32, k))
}

/// The stored zero of a group and column.
pub(crate) fn zero(qzeros: &[u8], at: usize, bits: u32) -> u32 {
    let per = 32 / bits as usize;
    // Rows of N are whole words.
    word(qzeros, at / per) >> (at % per * bits as usize) & ((1 << bits) - 1)
}

/// Sorts the columns by their groups. `None` if they are sorted already.
pub(crate) fn order(
    g_idx: &[u8],
    k: usize,
    group: usize,
    groups: usize,
) -> Result<Option<Order>, String> {
    if (0..k).all(|column| word(g_idx, column) as usize == column / group) {
        return Ok(None);
    }
    let mut next: Vec<usize> = (0..groups).map(|i| i * group).collect();
    let end = |i: usize| ((i + 1) * group).min(k);
    let mut columns = vec![0; k];
    for column in 0..k {
        let own = word(g_idx, column) as usize;
        if own >= groups {
            return Err(format!("g_idx of column {column} is {}, of {groups} groups", own as i32));
        }
        if next[own] == end(own) {
            let size = end(own) - own * group;
            return Err(format!(
                "g_idx: group {own} has more than its {size} columns, at column {column}"
            ));
        }
        columns[next[own]] = column as u32;
        next[own] += 1;
    }
    Ok(Some(Order { columns }))
}

/// The codes of some columns of the file as rows: words along K stay words along K.
pub(crate) fn transpose(qweight: &[u8], n: usize, rows: Range<usize>, out: &mut [u8]) {
    const TILE: usize = 16;
    let words = out.len() / 4 / rows.len();
    for first in (0..words).step_by(TILE) {
        let tile = first..(first + TILE).min(words);
        for (i, row) in rows.clone().enumerate() {
            for w in tile.clone() {
                let to = 4 * (i * words + w);
                let from = 4 * (w * n + row);
                out[to..to + 4].copy_from_slice(&qweight[from..from + 4]);
            }
        }
    }
}

/// Like [`transpose`], with the columns of W in this `order`.
pub(crate) fn gather(
    qweight: &[u8],
    n: usize,
    bits: u32,
    order: &[u32],
    rows: Range<usize>,
    out: &mut [u8],
) {
    let per = 32 / bits as usize;
    let words = order.len() / per;
    let mask = (1u32 << bits) - 1;
    let mut made = vec![0u32; rows.len()];
    for (w, columns) in order.chunks_exact(per).enumerate() {
        made.fill(0);
        for (j, &column) in columns.iter().enumerate() {
            let (line, shift) = (column as usize / per, column as usize % per * bits as usize);
            for (made, row) in made.iter_mut().zip(rows.clone()) {
                *made |= (word(qweight, line * n + row) >> shift & mask) << (j * bits as usize);
            }
        }
        for (i, made) in made.iter().enumerate() {
            let to = 4 * (i * words + w);
            out[to..to + 4].copy_from_slice(&made.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_have_numbers_of_32_bits() {
        let most = (1 << 29) - 1;
        assert_eq!(super::shape(most, 8, 1), Ok((4, 8 * most)));
        let text = super::shape(most + 1, 8, 1).unwrap_err();
        assert_eq!(text, "K = 536870912 · 8; at most 4294967295 is read");
    }
}
