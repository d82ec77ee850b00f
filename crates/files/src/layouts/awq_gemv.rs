//! AWQ's layouts for products of few rows, with codes of 4 bits along K. Groups are padded with
//! zeros, to a number that depends on their size.
//!
//! - `gemv`: `qweight` `[N, K / 8]`, `qzeros` `[N, Z]`, `scales` `[N, 8 · Z]`.
//! - `gemv_fast`: `qweight` I16 `[N / 4, K]`; `scales` and `qzeros` `[8 · Z, N]`. These zeros are
//!   floats: -scale · zero, rounded. Four rows by 64 columns lie together, and each 32 codes of a
//!   row in another order.

use super::affine::{Affine, biased, formats};
use super::packed::{NEEDS, Shapes, affine, said};
use super::rows::word;
use super::{Asked, Decoder, Layout, Parts, Read};
use crate::stream::Sink;
use std::ops::Range;
use tilewise_core::{DType, Error, QuantFormat, Result};

pub(super) const GEMV: Layout = Layout {
    name: "awq-gemv",
    needs: NEEDS,
    may: &[],
    notes: &[],
    modes: &["awq_gemv"],
    bits: &[4],
    // GPTQ and AWQ have these shapes with groups of at most 8 columns, which nothing holds.
    is: |parts| {
        let shape =
            |leaf| parts.get(leaf).and_then(|part| <[usize; 2]>::try_from(part.shape()).ok());
        let shapes = ["qweight", "qzeros", "scales"].map(shape);
        let [Some([n, _]), Some([zero_n, zeros]), Some([scale_n, scales])] = shapes else {
            return false;
        };
        n % 8 == 0 && [zero_n, scale_n] == [n, n] && zeros.checked_mul(8) == Some(scales)
    },
    read: gemv,
};

pub(super) const FAST: Layout = Layout {
    name: "awq-gemv-fast",
    modes: &["awq_gemv_fast"],
    is: |parts| parts.get("qweight").is_some_and(|codes| codes.kind() == "I16"),
    read: fast,
    ..GEMV
};

/// Words of zeros for the groups of a row, as AutoAWQ pads them.
fn width(groups: usize, group: usize) -> Option<usize> {
    let multiple = match group {
        128.. => 1,
        64 => 2,
        32 => 4,
        _ => return None,
    };
    groups.div_ceil(8).checked_next_multiple_of(multiple)
}

/// The groups of a matrix, if `padded` of them are those of the size that is said.
fn groups(
    asked: &Asked<'_>,
    layout: &Layout,
    k: usize,
    padded: usize,
    scales: DType,
) -> Result<Affine> {
    let told = said(asked, layout)?;
    let size = told.and_then(|told| told.group).or(asked.expected.group.map(u64::from));
    let Some(size) = size else {
        let text = "neither a config.json nor the shapes tell the groups: name the group's size";
        return Err(Error::Misuse(text.to_owned()));
    };
    let group = usize::try_from(size).map_or(k, |size| size.min(k));
    let groups = k.checked_div(group).unwrap_or(0);
    let own = width(groups, group).and_then(|width| width.checked_mul(8));
    if groups * group != k || own != Some(padded) {
        let text = format!("groups of {size} are said: for K = {k} they are not filled up to");
        return Err(asked.parts.contradiction(format!("{text} {padded}")));
    }
    // Groups are all there is to say of shapes.
    let shapes = Shapes { rows: 0, columns: 0, zero_columns: 0, groups, n: 0, scales };
    affine(asked, told, &shapes, (4, k))
}

#[derive(Debug)]
struct Gemv {
    affine: Affine,
    /// Words of zeros of a row.
    width: usize,
}

fn gemv(asked: &Asked<'_>) -> Result<Read> {
    let parts = &asked.parts;
    let shapes = Shapes::of(parts)?;
    let Shapes { rows: n, columns, zero_columns: width, n: padded, scales, .. } = shapes;
    let k = columns.checked_mul(8).ok_or_else(|| parts.refuse("K cannot be counted"))?;
    let affine = groups(asked, &GEMV, k, padded, scales)?;
    let format = affine.format;
    let decoder = Box::new(Gemv { affine, width });
    Ok(Read { format, shape: vec![n, k], factor: None, decoder })
}

impl Decoder for Gemv {
    fn stream(&self, parts: &Parts<'_>, rows: Range<usize>, sink: &mut Sink<'_>) -> Result<()> {
        let (codes, zeros, scales) =
            (parts.need("qweight")?.bytes, parts.need("qzeros")?, parts.need("scales")?);
        let own = |rows: Range<usize>, out: &mut [u8]| {
            let length = self.affine.k / 2;
            out.copy_from_slice(&codes[rows.start * length..rows.end * length]);
        };
        self.affine.stream(rows, sink, own, |row, group| {
            let zero = zeros.word(row * self.width + group / 8) >> (group % 8 * 4) & 15;
            (scales.number(row * self.width * 8 + group), zero as i32)
        })
    }
}

#[derive(Debug)]
struct Fast {
    format: QuantFormat,
    n: usize,
    k: usize,
    group: usize,
}

fn fast(asked: &Asked<'_>) -> Result<Read> {
    let parts = &asked.parts;
    let (codes, zeros, scales) =
        (parts.need("qweight")?, parts.need("qzeros")?, parts.need("scales")?);
    if ![zeros, scales].iter().all(|part| part.is_float()) || zeros.shape() != scales.shape() {
        return Err(parts.refuse("scales and qzeros of one shape, in floats, are expected"));
    }
    let (&[quarter, k], &[padded, n]) = (codes.shape(), scales.shape()) else {
        return Err(parts.refuse("qweight and scales of two dimensions are expected"));
    };
    if quarter.checked_mul(4) != Some(n) || k == 0 || !k.is_multiple_of(64) {
        let text = format!("{quarter} lines of codes for N = {n} and K = {k}");
        return Err(parts.refuse(format!("{text}; N / 4 lines and whole 64 columns are expected")));
    }
    // Scales of 16 bits are held in any format.
    let group = groups(asked, &FAST, k, padded, DType::F16)?.group;
    let format = asked.format(4, &formats(4).collect::<Vec<_>>(), k, group)?;
    let decoder = Box::new(Fast { format, n, k, group });
    Ok(Read { format, shape: vec![n, k], factor: None, decoder })
}

impl Fast {
    /// The codes of a row. Four rows by 64 columns have 128 bytes, 32 for each row.
    fn codes(&self, qweight: &[u8], row: usize, out: &mut [u8]) {
        let lines = qweight[row / 4 * self.k * 2..][..self.k * 2].chunks_exact(128);
        let halves = lines.flat_map(|line| line[row % 4 * 32..][..32].chunks_exact(16));
        for (half, out) in halves.zip(out.chunks_exact_mut(16)) {
            for (a, out) in out.chunks_exact_mut(4).enumerate() {
                // Column 8a + 2b + d is nibble 4d + a of word b.
                let code = |b: usize, d: usize| word(half, b) >> (4 * (4 * d + a)) & 15;
                let made = (0..8).fold(0, |made, i| made | code(i / 2, i % 2) << (4 * i));
                out.copy_from_slice(&made.to_le_bytes());
            }
        }
    }
}

impl Decoder for Fast {
    fn stream(&self, parts: &Parts<'_>, rows: Range<usize>, sink: &mut Sink<'_>) -> Result<()> {
        let (codes, zeros, scales) =
            (parts.need("qweight")?.bytes, parts.need("qzeros")?, parts.need("scales")?);
        let own = |rows: Range<usize>, out: &mut [u8]| {
            for (row, out) in rows.zip(out.chunks_exact_mut(self.k / 2)) {
                self.codes(codes, row, out);
            }
        };
        biased(self.format, self.k, rows, sink, own, |row, column| {
            let at = column / self.group * self.n + row;
            (scales.number(at), zeros.number(at))
        })
    }
}
