//! Memory of the host in sizes that callers choose. Where there is none, that is an error and not
//! the end of the process.

use tilewise_core::{DType, Error, Result, convert};

/// An empty vector with room for `len` elements. `OutOfMemory` when there is none.
pub(crate) fn room<T>(len: usize) -> Result<Vec<T>> {
    let mut room = Vec::new();
    let bytes = (len as u128) * size_of::<T>() as u128;
    room.try_reserve_exact(len)
        .map_err(|why| Error::OutOfMemory(format!("{bytes} bytes: {why}")))?;
    Ok(room)
}

/// `len` times the value.
pub(crate) fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>> {
    let mut filled = room(len)?;
    filled.resize(len, value);
    Ok(filled)
}

/// A copy.
pub(crate) fn copied<T: Copy>(elements: &[T]) -> Result<Vec<T>> {
    let mut copy = room(elements.len())?;
    copy.extend_from_slice(elements);
    Ok(copy)
}

/// As [`convert::decode`].
pub(crate) fn decoded(dtype: DType, bytes: &[u8]) -> Result<Vec<f32>> {
    let mut numbers = room(bytes.len() / dtype.bytes() as usize)?;
    // In pieces of whole elements, whose own vectors are small.
    for piece in bytes.chunks(1 << 16) {
        numbers.extend(convert::decode(dtype, piece)?);
    }
    Ok(numbers)
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
    fn numbers_are_those_of_one_piece() {
        for dtype in DType::FLOATS {
            let bytes: Vec<u8> = (0..200_004u32).map(|i| (i * 7 % 120) as u8).collect();
            assert_eq!(decoded(dtype, &bytes), convert::decode(dtype, &bytes), "{dtype}");
            assert!(decoded(dtype, &bytes[..200_003]).is_err(), "{dtype}");
        }
        assert_eq!(decoded(DType::F16, &[]), Ok(Vec::new()));
    }
}
