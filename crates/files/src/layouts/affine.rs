//! w = scale · (code - zero), as an affine format or as int8.
//!
//! An affine format has scale · code + bias, with a bias of -scale · zero. If scales have 16 bits,
//! all of this is exact in f32. With scales of f32 the products would be rounded before they are
//! added. So int8 holds code - zero then, if that fits in a byte.

use super::Asked;
use super::rows::{code, in_chunks};
use crate::stream::Sink;
use std::ops::Range;
use tilewise_core::{DType, QuantFormat, Result};

/// A matrix of codes along K, with a scale and a zero for each group of them.
#[derive(Clone, Debug)]
pub(super) struct Affine {
    pub(super) bits: u32,
    pub(super) k: usize,
    /// Elements that share a scale in the file; the last group may have fewer.
    pub(super) group: usize,
    pub(super) format: QuantFormat,
}

/// The scales and zeros, as far as they count for the format.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    /// The type of scales.
    pub(super) scales: DType,
    /// Whether there are zeros that differ from the middle of the codes.
    pub(super) has_zeros: bool,
}

impl Affine {
    /// Chooses the format.
    pub(super) fn new(
        asked: &Asked<'_>,
        bits: u32,
        k: usize,
        group: usize,
        numbers: Numbers,
    ) -> Result<Self> {
        let affine = || formats(bits);
        let int8 = || ["int8-g128", "int8-g32", "int8-g16"].into_iter().flat_map(str::parse);
        let formats: Vec<QuantFormat> = match (numbers.scales, bits, numbers.has_zeros) {
            (_, 8, false) | (DType::F32, ..8, _) => int8().collect(),
            (_, 8, true) => affine().collect(),
            _ => affine().chain(int8()).collect(),
        };
        let format = asked.format(bits, &formats, k, group)?;
        Ok(Affine { bits, k, group, format })
    }

    /// The planes of some rows. `codes` writes the codes of rows in words, `number` gives the scale
    /// and the zero of a row and group.
    pub(super) fn stream(
        &self,
        rows: Range<usize>,
        sink: &mut Sink<'_>,
        codes: impl Fn(Range<usize>, &mut [u8]),
        number: impl Fn(usize, usize) -> (f32, i32),
    ) -> Result<()> {
        let block = self.format.block() as usize;
        let (blocks, row_bytes) = (self.k / block, self.k * self.bits as usize / 8);
        let mut packed = Vec::new();
        in_chunks(self.format, self.k, rows, sink, |rows, planes| {
            // Zeros of blocks whose codes are made signed.
            let mut zeros = vec![0; if planes.len() == 2 { rows.len() * blocks } else { 0 }];
            let [to_codes, to_numbers @ ..] = planes else { return };
            for j in 0..blocks {
                for (i, row) in rows.clone().enumerate() {
                    let (scale, zero) = number(row, j * block / self.group);
                    let at = i * blocks + j;
                    put(to_numbers, 0, at, scale);
                    if to_numbers.len() == 2 {
                        put(to_numbers, 1, at, -(scale * zero as f32));
                    } else {
                        zeros[at] = zero;
                    }
                }
            }
            if zeros.is_empty() {
                return codes(rows, to_codes);
            }
            packed.resize(rows.len() * row_bytes, 0);
            codes(rows, &mut packed);
            for (at, (zero, to)) in zeros.iter().zip(to_codes.chunks_exact_mut(block)).enumerate() {
                let row = &packed[at / blocks * row_bytes..][..row_bytes];
                for (i, to) in to.iter_mut().enumerate() {
                    let own = code(|byte| row[byte], at % blocks * block + i, self.bits);
                    *to = (own as i32 - zero) as u8;
                }
            }
        })
    }
}

/// Affine formats with scales in f32, those of long blocks first.
pub(super) fn formats(bits: u32) -> impl Iterator<Item = QuantFormat> {
    let format = move |block| QuantFormat::affine(bits, block, DType::F32).ok();
    [128, 64, 32].into_iter().filter_map(format)
}

/// The planes of some rows of an affine format. `codes` writes the codes of rows in words, `number`
/// gives the scale and the bias of a row and column.
pub(super) fn biased(
    format: QuantFormat,
    k: usize,
    rows: Range<usize>,
    sink: &mut Sink<'_>,
    codes: impl Fn(Range<usize>, &mut [u8]),
    number: impl Fn(usize, usize) -> (f32, f32),
) -> Result<()> {
    let block = format.block() as usize;
    in_chunks(format, k, rows, sink, |rows, planes| {
        let [to_codes, to_numbers @ ..] = planes else { return };
        codes(rows.clone(), to_codes);
        let blocks = rows.flat_map(|row| (0..k / block).map(move |j| (row, j * block)));
        for (at, (row, column)) in blocks.enumerate() {
            let (scale, bias) = number(row, column);
            put(to_numbers, 0, at, scale);
            put(to_numbers, 1, at, bias);
        }
    })
}

fn put(planes: &mut [&mut [u8]], plane: usize, at: usize, number: f32) {
    planes[plane][4 * at..4 * at + 4].copy_from_slice(&number.to_le_bytes());
}
