//! Elements of C: words that threads share out.

use half::slice::HalfFloatSliceExt;
use std::marker::PhantomData;
use tilewise_core::{DType, Error, Format, Operand, Result};

/// C, locked.
pub(crate) struct Output<'a> {
    words: &'a mut [u32],
    dtype: DType,
}

impl<'a> Output<'a> {
    pub(crate) fn new(words: &'a mut [u32], c: &Operand) -> Result<Self> {
        match c.format {
            Format::Dense(dtype) => Ok(Output { words, dtype }),
            Format::Quantized(_) => Err(Error::Unsupported("a quantized C".into())),
        }
    }

    /// C for threads that share its elements out.
    pub(super) fn shared(&mut self) -> Shared<'_> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(self.words);
        Shared {
            first: bytes.as_mut_ptr(),
            bytes: bytes.len(),
            dtype: self.dtype,
            words: PhantomData,
        }
    }
}

/// C for threads that share its elements out.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a> {
    first: *mut u8,
    bytes: usize,
    dtype: DType,
    words: PhantomData<&'a mut [u32]>,
}

// SAFETY: it is a pointer into words that are locked for its life. Only `row` uses it, and the
// callers of `row` promise that no two threads have an element at a time.
unsafe impl Send for Shared<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    /// Elements that lie one after the other.
    ///
    /// # Safety
    /// Nobody else has one of these elements as long as the row lives.
    pub(super) unsafe fn row(&self, first: usize, len: usize) -> Row<'a> {
        let size = self.dtype.bytes() as usize;
        assert!((first + len) * size <= self.bytes);
        // SAFETY: the range was just compared with the words' length, its elements are aligned as
        // words are, and by the caller's promise nobody else has one of them.
        unsafe {
            let first = self.first.add(first * size);
            match self.dtype {
                DType::F32 => Row::F32(std::slice::from_raw_parts_mut(first.cast(), len)),
                DType::F16 => Row::F16(std::slice::from_raw_parts_mut(first.cast(), len)),
                DType::BF16 => Row::BF16(std::slice::from_raw_parts_mut(first.cast(), len)),
                DType::I32 => Row::I32(std::slice::from_raw_parts_mut(first.cast(), len)),
                DType::U32 => Row::U32(std::slice::from_raw_parts_mut(first.cast(), len)),
            }
        }
    }
}

/// Elements of a row of C.
pub(super) enum Row<'a> {
    F32(&'a mut [f32]),
    F16(&'a mut [half::f16]),
    BF16(&'a mut [half::bf16]),
    I32(&'a mut [i32]),
    U32(&'a mut [u32]),
}

impl Row<'_> {
    pub(super) fn load(&self, out: &mut [f32]) {
        match self {
            Row::F32(row) => out.copy_from_slice(row),
            Row::F16(row) => row.convert_to_f32_slice(out),
            Row::BF16(row) => row.convert_to_f32_slice(out),
            Row::I32(row) => out.iter_mut().zip(&**row).for_each(|(out, x)| *out = *x as f32),
            Row::U32(row) => out.iter_mut().zip(&**row).for_each(|(out, x)| *out = *x as f32),
        }
    }

    pub(super) fn store(&mut self, numbers: &[f32]) {
        match self {
            Row::F32(row) => row.copy_from_slice(numbers),
            Row::F16(row) => row.convert_from_f32_slice(numbers),
            Row::BF16(row) => row.convert_from_f32_slice(numbers),
            Row::I32(row) => row.iter_mut().zip(numbers).for_each(|(out, x)| *out = *x as i32),
            Row::U32(row) => row.iter_mut().zip(numbers).for_each(|(out, x)| *out = *x as u32),
        }
    }
}

/// An element of storage.
pub(crate) fn load(words: &[u32], dtype: DType, index: u64) -> f32 {
    let index = index as usize;
    match dtype {
        DType::F32 => f32::from_bits(words[index]),
        DType::F16 => bytemuck::cast_slice::<u32, half::f16>(words)[index].to_f32(),
        DType::BF16 => bytemuck::cast_slice::<u32, half::bf16>(words)[index].to_f32(),
        DType::I32 => words[index] as i32 as f32,
        DType::U32 => words[index] as f32,
    }
}
