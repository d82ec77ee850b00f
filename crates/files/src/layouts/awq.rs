//! AWQ, its layout `gemm`: codes of 4 bits in words along N, `qweight` `[K, N / 8]`; `scales` `[G,
//! N]`; zeros like codes, `qzeros` `[G, N / 8]`.

use super::affine::Affine;
use super::packed::{NEEDS, Shapes, affine, number, said};
use super::rows::word;
use super::{Asked, Decoder, Layout, Parts, Read};
use crate::stream::Sink;
use std::ops::Range;
use tilewise_core::Result;

pub(super) const LAYOUT: Layout = Layout {
    name: "awq",
    needs: NEEDS,
    may: &[],
    notes: &[],
    modes: &["awq"],
    bits: &[4],
    // Others of these names are GPTQ's.
    is: |_| true,
    read,
};

/// The column, of eight, that each nibble of a word holds.
const COLUMNS: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];
/// The nibble of each column.
const NIBBLES: [usize; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

#[derive(Debug)]
struct Awq {
    affine: Affine,
    n: usize,
}

fn read(asked: &Asked<'_>) -> Result<Read> {
    let parts = &asked.parts;
    let shapes = Shapes::of(parts)?;
    let said = said(asked, &LAYOUT)?;
    let Shapes { rows: k, columns, zero_columns, n, .. } = shapes;
    if columns.checked_mul(8) != Some(n) || zero_columns != columns {
        let text = format!("N = {n} with {columns} words of codes and {zero_columns} of zeros");
        return Err(parts.refuse(format!("{text} is neither GPTQ nor AWQ of 4 bits")));
    }
    if !k.is_multiple_of(8) {
        return Err(parts.unread(format!("K = {k} is no multiple of 8")));
    }
    let affine = affine(asked, said, &shapes, (4, k))?;
    let format = affine.format;
    Ok(Read { format, shape: vec![n, k], factor: None, decoder: Box::new(Awq { affine, n }) })
}

impl Decoder for Awq {
    fn stream(&self, parts: &Parts<'_>, rows: Range<usize>, sink: &mut Sink<'_>) -> Result<()> {
        let (codes, zeros) = (parts.need("qweight")?.bytes, parts.need("qzeros")?);
        // Rows of N are whole words.
        let zero = |at: usize| zeros.word(at / 8) >> (4 * NIBBLES[at % 8]) & 15;
        let own = |rows: Range<usize>, out: &mut [u8]| transpose(codes, self.n, rows, out);
        self.affine.stream(rows, sink, own, number(parts, self.n, zero)?)
    }
}

/// The codes of some columns of the file as rows of words along K.
fn transpose(qweight: &[u8], n: usize, rows: Range<usize>, out: &mut [u8]) {
    let words = out.len() / 4 / rows.len();
    for w in 0..words {
        for eight in rows.start / 8..rows.end.div_ceil(8) {
            let lines: [u32; 8] =
                std::array::from_fn(|j| word(qweight, (8 * w + j) * (n / 8) + eight));
            for (nibble, column) in COLUMNS.into_iter().enumerate() {
                let row = 8 * eight + column;
                if !rows.contains(&row) {
                    continue;
                }
                let code = |j: usize| (lines[j] >> (4 * nibble) & 15) << (4 * j);
                let made = (0..8).fold(0, |made, j| made | code(j));
                let to = 4 * ((row - rows.start) * words + w);
                out[to..to + 4].copy_from_slice(&made.to_le_bytes());
            }
        }
    }
}
