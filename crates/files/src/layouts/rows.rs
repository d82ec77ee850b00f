//! Numbers of tensors, and rows in chunks.

use crate::stream::{CHUNK, Chunk, Sink};
use half::{bf16, f16};
use std::ops::Range;
use tilewise_core::{DType, Error, QuantFormat, Result};

/// A word of a tensor.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[4 * at..4 * at + 4]);
    u32::from_le_bytes(word)
}

/// A number of a tensor.
pub(super) fn number(bytes: &[u8], at: usize, dtype: DType) -> f32 {
    let half = || [bytes[2 * at], bytes[2 * at + 1]];
    match dtype {
        DType::F16 => f16::from_le_bytes(half()).to_f32(),
        DType::BF16 => bf16::from_le_bytes(half()).to_f32(),
        _ => f32::from_bits(word(bytes, at)),
    }
}

/// A code of some bits, at most 8, in a stream of bytes that begins with the lowest bits.
pub(super) fn code(byte: impl Fn(usize) -> u8, at: usize, bits: u32) -> u32 {
    code_from(byte, at * bits as usize, bits)
}

/// A code whose first bit this is.
pub(super) fn code_from(byte: impl Fn(usize) -> u8, first: usize, bits: u32) -> u32 {
    let shift = first % 8;
    let low = u32::from(byte(first / 8)) >> shift;
    let is_whole = shift + bits as usize <= 8;
    let high = if is_whole { 0 } else { u32::from(byte(first / 8 + 1)) << (8 - shift) };
    (low | high) & ((1 << bits) - 1)
}

/// Stores a code where zeros are, as [`code`] reads it.
pub(super) fn put(bytes: &mut [u8], at: usize, bits: u32, code: u32) {
    let first = at * bits as usize;
    let [low, high] = ((code << (first % 8)) as u16).to_le_bytes();
    bytes[first / 8] |= low;
    if high != 0 {
        bytes[first / 8 + 1] |= high;
    }
}

/// The number of a byte of e8m0: a power of two, or NaN.
pub(super) fn e8m0(byte: u8) -> f32 {
    match byte {
        // 2^-127 is subnormal.
        0 => f32::from_bits(1 << 22),
        255 => f32::NAN,
        _ => f32::from_bits(u32::from(byte) << 23),
    }
}

/// Gives the planes of rows `wanted` of a matrix with `k` columns, a few rows at a time: `decode`
/// writes them, plane by plane.
pub(super) fn in_chunks(
    format: QuantFormat,
    k: usize,
    wanted: Range<usize>,
    sink: &mut Sink<'_>,
    mut decode: impl FnMut(Range<usize>, &mut [&mut [u8]]),
) -> Result<()> {
    let sizes = format.sizes(1, k)?;
    let largest = sizes.iter().copied().max().unwrap_or(0);
    // There may be more rows without columns than can be passed through.
    if largest == 0 {
        return Ok(());
    }
    // Rows of W may run across those of the file: so few at a time stay in the processor's caches.
    let rows = (CHUNK / 4 / largest).max(1).next_multiple_of(8).min(wanted.len());
    let mut planes = sizes.iter().map(|&row| room(rows, row)).collect::<Result<Vec<_>>>()?;
    for first in wanted.clone().step_by(rows.max(1)) {
        let range = first..(first + rows).min(wanted.end);
        let mut parts: Vec<&mut [u8]> = Vec::with_capacity(planes.len());
        for (plane, row) in planes.iter_mut().zip(&sizes) {
            parts.push(&mut plane[..range.len() * row]);
        }
        decode(range.clone(), &mut parts);
        for (plane, (row, bytes)) in sizes.iter().zip(parts).enumerate() {
            let offset = (first - wanted.start) as u64 * *row as u64;
            sink(Chunk { plane, offset, bytes })?;
        }
    }
    Ok(())
}

/// Zeros for some rows, if there is memory.
fn room(rows: usize, row: usize) -> Result<Vec<u8>> {
    let mut room = Vec::new();
    let bytes = rows.saturating_mul(row);
    room.try_reserve_exact(bytes)
        .map_err(|why| Error::OutOfMemory(format!("{bytes} bytes: {why}")))?;
    room.resize(bytes, 0);
    Ok(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_all_widths() {
        for bits in 1..=8 {
            let codes: Vec<u32> = (0..32).map(|i| (i * 37 + 11) & ((1 << bits) - 1)).collect();
            let mut bytes = vec![0; 4 * bits as usize];
            codes.iter().enumerate().for_each(|(at, own)| put(&mut bytes, at, bits, *own));
            let read = (0..32).map(|at| code(|byte| bytes[byte], at, bits)).collect::<Vec<_>>();
            assert_eq!(read, codes, "{bits}");
        }
        assert_eq!([e8m0(127), e8m0(0), e8m0(254)], [1.0, 2f32.powi(-127), 2f32.powi(127)]);
    }
}
