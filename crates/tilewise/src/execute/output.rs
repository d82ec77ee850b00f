//! Elements of C, which threads share out.

use std::marker::PhantomData;
use tilewise_core::{DType, Error, Operand, Result};

/// The bytes of C, which are locked.
#[derive(Clone, Copy)]
pub(super) struct Output<'a> {
    first: *mut u8,
    bytes: usize,
    /// The type of an element.
    pub(super) dtype: DType,
    words: PhantomData<&'a mut [u32]>,
}

// SAFETY: it is a pointer into words that are locked for its life. Only `row` uses it, and the
// callers of `row` promise that no two threads have an element at a time.
unsafe impl Send for Output<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for Output<'_> {}

impl<'a> Output<'a> {
    pub(super) fn new(words: &'a mut [u32], c: &Operand) -> Result<Self> {
        let quantized = || Error::Unsupported("a quantized C".into());
        let dtype = c.format.element().ok_or_else(quantized)?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(words);
        Ok(Output { first: bytes.as_mut_ptr(), bytes: bytes.len(), dtype, words: PhantomData })
    }

    /// The bytes of elements that lie one after the other, aligned as their type is.
    ///
    /// # Safety
    /// Nobody else has one of these elements as long as the slice lives.
    pub(super) unsafe fn row(&self, first: usize, len: usize) -> &'a mut [u8] {
        let size = self.dtype.bytes() as usize;
        assert!((first + len) * size <= self.bytes);
        // SAFETY: the range was just compared with the length of the words, and by the caller's
        // promise nobody else has one of its elements.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(first * size), len * size) }
    }
}
