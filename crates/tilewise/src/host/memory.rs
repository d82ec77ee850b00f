//! Memory of the host in sizes that callers choose. Running out of it is an error, not the end of
//! the process.

use std::ops::Range;
use tilewise_core::{DType, Error, Result, convert};

/// An empty vector with room for `len` elements. `OutOfMemory` when there is none.
pub(crate) fn room<T>(len: usize) -> Result<Vec<T>> {
    let mut room = Vec::new();
    let bytes = (len as u128) * size_of::<T>() as u128;
    room.try_reserve_exact(len)
        .map_err(|why| Error::OutOfMemory(format!("{bytes} bytes: {why}")))?;
    Ok(room)
}

/// A vector of `len` copies of the value.
pub(crate) fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>> {
    let mut filled = room(len)?;
    filled.resize(len, value);
    Ok(filled)
}

/// A copy of the elements.
pub(crate) fn copied<T: Copy>(elements: &[T]) -> Result<Vec<T>> {
    let mut copy = room(elements.len())?;
    copy.extend_from_slice(elements);
    Ok(copy)
}

/// Like [`convert::decode`]; `OutOfMemory` when there is no room.
pub(crate) fn decoded(dtype: DType, bytes: &[u8]) -> Result<Vec<f32>> {
    let mut numbers = room(bytes.len() / dtype.bytes() as usize)?;
    // Decode piece by piece: `convert::decode` allocates a vector, which must be small.
    for piece in bytes.chunks(1 << 16) {
        numbers.extend(convert::decode(dtype, piece)?);
    }
    Ok(numbers)
}

/// Pieces that fill `bytes` bytes with repeats of a block: the place of each piece, and the part of
/// the block that it holds.
pub(crate) fn repeated(block: &[u8], bytes: usize) -> impl Iterator<Item = (Range<usize>, &[u8])> {
    (0..bytes).step_by(block.len().max(1)).map(move |start| {
        let end = bytes.min(start + block.len());
        (start..end, &block[..end - start])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_an_error_with_the_bytes() {
        for len in [1 << 60, usize::MAX] {
            let Err(Error::OutOfMemory(why)) = room::<u32>(len) else { panic!("{len} words") };
            assert!(why.contains(&format!("{} bytes", len as u128 * 4)), "{why}");
            assert!(filled(len, 0f32).is_err());
        }
    }

    #[test]
    fn a_block_is_repeated_to_the_last_byte() {
        for (block, bytes) in [(3, 8), (4, 8), (8, 3), (1, 0), (0, 0)] {
            let block: Vec<u8> = (0..block).collect();
            let mut all = vec![u8::MAX; bytes];
            repeated(&block, bytes).for_each(|(place, piece)| all[place].copy_from_slice(piece));
            let wanted: Vec<u8> = block.iter().copied().cycle().take(bytes).collect();
            assert_eq!(all, wanted);
        }
    }

    #[test]
    fn numbers_are_those_of_one_piece() {
        for dtype in DType::FLOATS {
            let bytes: Vec<u8> = (0..200_004u32).map(|i| (i * 7 % 120) as u8).collect();
            assert_eq!(decoded(dtype, &bytes), convert::decode(dtype, &bytes), "{dtype}");
            assert!(decoded(dtype, &bytes[..200_003]).is_err(), "{dtype}");
        }
        assert_eq!(decoded(DType::F16, &[]), Ok(Vec::new()));
    }
}
