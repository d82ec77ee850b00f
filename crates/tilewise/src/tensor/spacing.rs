//! The gaps between rows of quantized weights ([`QuantFormat::pitch`]).

use crate::host::memory;
use std::borrow::Cow;
use tilewise_core::Result;
use tilewise_core::quant::{Plane, QuantFormat};

/// How the rows of a plane lie in storage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spacing {
    /// Bytes of a row.
    row: usize,
    /// Bytes from the start of a row to the start of the next.
    pitch: usize,
}

impl Spacing {
    /// Bytes without gaps.
    #[cfg(feature = "files")]
    pub(crate) const NONE: Self = Spacing { row: 0, pitch: 0 };

    /// Spacing of each plane of weights, in rows of `k` weights, `pitch` from row to row.
    pub(crate) fn of_planes(format: QuantFormat, k: usize, pitch: usize) -> Vec<Self> {
        let of = |plane: &Plane| {
            let bytes = |weights| plane.bytes_of(format.block(), weights as u64) as usize;
            Spacing { row: bytes(k), pitch: bytes(pitch) }
        };
        format.planes().iter().map(of).collect()
    }

    /// Adds a gap of zeros to a plane's bytes behind each row that ends in them. `first` is the
    /// number of the plane's bytes that came before these.
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::Error).
    pub(crate) fn spread<'a>(&self, first: usize, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        let Spacing { row, pitch } = *self;
        if row == pitch {
            return Ok(bytes.into());
        }
        let ended = (first % row + bytes.len()) / row;
        let mut spread = memory::room(bytes.len() + ended * (pitch - row))?;
        self.put(first, bytes, &mut spread);
        Ok(spread.into())
    }

    /// Like [`spread`](Self::spread), for the planes of several matrices, one after the other.
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::Error).
    pub(crate) fn spread_all<'a>(&self, planes: &[&'a [u8]]) -> Result<Cow<'a, [u8]>> {
        if let [only] = planes {
            return self.spread(0, only);
        }
        let bytes: usize = planes.iter().map(|plane| plane.len()).sum();
        let rows = bytes.checked_div(self.row).unwrap_or(0);
        let mut all = memory::room(bytes + rows * (self.pitch - self.row))?;
        planes.iter().for_each(|plane| self.put(0, plane, &mut all));
        Ok(all.into())
    }

    fn put(&self, first: usize, mut bytes: &[u8], to: &mut Vec<u8>) {
        let Spacing { row, pitch } = *self;
        if row == pitch {
            return to.extend_from_slice(bytes);
        }
        let mut begun = first % row;
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at((row - begun).min(bytes.len()));
            to.extend_from_slice(piece);
            begun += piece.len();
            if begun == row {
                to.resize(to.len() + pitch - row, 0);
                begun = 0;
            }
            bytes = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_are_spread_as_the_whole() {
        let spacing = Spacing { row: 3, pitch: 5 };
        let spread = |first, bytes: &[u8]| spacing.spread(first, bytes).unwrap().into_owned();
        let whole = [1, 2, 3, 0, 0, 4, 5, 6, 0, 0, 7, 8];
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(spread(0, &bytes), whole);
        for size in 1..=8 {
            let pieces = (0..).step_by(size).zip(bytes.chunks(size));
            let joined: Vec<u8> = pieces.flat_map(|(first, piece)| spread(first, piece)).collect();
            assert_eq!(joined, whole, "{size}");
        }
        assert!(spread(0, &[]).is_empty());
        let two = [&bytes[..6], &bytes[..3]];
        let both = [1, 2, 3, 0, 0, 4, 5, 6, 0, 0, 1, 2, 3, 0, 0];
        assert_eq!(spacing.spread_all(&two).unwrap()[..], both);
        let packed = Spacing { row: 3, pitch: 3 }.spread(1, &bytes).unwrap();
        assert!(matches!(packed, Cow::Borrowed(same) if same == bytes));
    }
}
