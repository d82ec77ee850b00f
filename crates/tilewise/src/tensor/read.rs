//! Reading elements back.

use super::{Element, Tensor};
use crate::host::memory;
use crate::tensor::storage::Storage;
use tilewise_core::{Error, Result};

impl Tensor {
    /// The elements, row-major in the view's order. Never blocks.
    ///
    /// ```no_run
    /// # use tilewise::{Context, ContextOptions, Tensor};
    /// async fn squares(x: &[f32]) -> tilewise::Result<Vec<f32>> {
    ///     let ctx = Context::request(&ContextOptions::default()).await?;
    ///     let x = Tensor::upload(&ctx, x, &[x.len(), 1])?;
    ///     ctx.matmul(&x, &x.t())?.read().await
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) when `T` is not the tensor's dtype; otherwise as
    /// [`read_bytes`](Self::read_bytes).
    pub async fn read<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype {
            return Err(Error::Misuse(format!(
                "reading elements of {} as {}",
                self.dtype,
                T::DTYPE
            )));
        }
        let bytes = self.read_bytes().await?;
        let mut elements = memory::filled(bytes.len() / size_of::<T>(), T::zeroed())?;
        bytemuck::cast_slice_mut(&mut elements).copy_from_slice(&bytes);
        Ok(elements)
    }

    /// The elements as f32: floats exactly, integers rounded.
    ///
    /// # Errors
    /// The errors of [`read_bytes`](Self::read_bytes).
    pub async fn read_f32(&self) -> Result<Vec<f32>> {
        memory::decoded(self.dtype, &self.read_bytes().await?)
    }

    /// The elements as little-endian bytes, row-major in the view's order.
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) when a given buffer lacks `COPY_SRC`, and inside the work of
    /// [`submit`](crate::Context::submit).
    pub async fn read_bytes(&self) -> Result<Vec<u8>> {
        let bytes = self.extent_bytes().await?;
        if self.is_contiguous() { Ok(bytes) } else { self.gather(&bytes) }
    }

    /// The bytes from the view's first element to its last.
    pub(crate) async fn extent_bytes(&self) -> Result<Vec<u8>> {
        self.context.not_recording()?;
        match (&self.storage, self.place()) {
            (Storage::Gpu { .. }, Some((buffer, first))) if self.elem_count() > 0 => {
                self.context.gpu_backend()?.device.read(buffer, first..first + self.extent()?).await
            }
            (Storage::Gpu { .. }, _) => Ok(Vec::new()),
            (Storage::Host { .. }, _) => self.host_bytes(),
        }
    }

    /// Like [`extent_bytes`](Self::extent_bytes), for host storage.
    pub(crate) fn host_bytes(&self) -> Result<Vec<u8>> {
        let (first, bytes) = (self.offset * self.dtype.bytes() as usize, self.extent()? as usize);
        let words = self.storage.host()?;
        // An empty view may begin beyond the storage.
        if bytes == 0 {
            Ok(Vec::new())
        } else {
            memory::copied(&bytemuck::cast_slice(&words)[first..first + bytes])
        }
    }

    /// Bytes from the view's first element to the end of its last.
    pub(crate) fn extent(&self) -> Result<u64> {
        Ok(if self.elem_count() == 0 {
            0
        } else {
            (self.end()? - self.offset as u64) * self.dtype.bytes()
        })
    }

    /// Like [`read`](Self::read), blocking.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    #[cfg(not(target_family = "wasm"))]
    pub fn read_blocking<T: Element>(&self) -> Result<Vec<T>> {
        pollster::block_on(self.read())
    }

    /// Like [`read_f32`](Self::read_f32), blocking.
    ///
    /// # Errors
    /// The errors of [`read_f32`](Self::read_f32).
    #[cfg(not(target_family = "wasm"))]
    pub fn read_f32_blocking(&self) -> Result<Vec<f32>> {
        pollster::block_on(self.read_f32())
    }

    /// Like [`read_bytes`](Self::read_bytes), blocking.
    ///
    /// # Errors
    /// The errors of [`read_bytes`](Self::read_bytes).
    #[cfg(not(target_family = "wasm"))]
    pub fn read_bytes_blocking(&self) -> Result<Vec<u8>> {
        pollster::block_on(self.read_bytes())
    }

    /// Picks the view's elements from `bytes`, which begin with the first element and end with the
    /// last.
    pub(crate) fn gather(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let size = self.dtype.bytes() as usize;
        let mut out = memory::room(self.elem_count() * size)?;
        for place in self.places() {
            out.extend_from_slice(&bytes[place * size..(place + 1) * size]);
        }
        Ok(out)
    }

    /// The distance in elements from the first element to each, row-major in the view's order.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> {
        let mut index = vec![0usize; self.shape.len()];
        (0..self.elem_count()).map(move |_| {
            let place = index.iter().zip(&self.strides).map(|(i, stride)| i * stride).sum();
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                if index[axis] < self.shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
            place
        })
    }
}
