//! Dense tensors from files.

use super::Weights;
use crate::context::Context;
use crate::tensor::Tensor;
use std::fs::File;
use std::path::Path;
use tilewise_core::{DType, Error, Result};
use tilewise_files::{Npy, Scalar};

impl Tensor {
    /// Loads a dense tensor from a `.safetensors` file or a sharded model, by its name and in its
    /// type. The whole file is read; for several tensors, or a large file, open [`Weights`].
    ///
    /// ```no_run
    /// # fn main() -> tilewise::Result<()> {
    /// # let ctx = tilewise::Context::new()?;
    /// let file = "model.safetensors";
    /// let norm = tilewise::Tensor::from_safetensors(&ctx, file, "model.norm.weight")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Weights::open`] and [`Weights::get`]; [`Misuse`](crate::Error) for a
    /// quantized tensor and for a GGUF file.
    pub fn from_safetensors(context: &Context, path: impl AsRef<Path>, name: &str) -> Result<Self> {
        let weights = Weights::open(context, path)?;
        weights.is_gguf(false)?;
        weights.dense(name)
    }

    /// Loads the array of an `.npy` file, in its type and shape; f64 is rounded to f32. Either
    /// order of bytes, and either order of dimensions, will do.
    ///
    /// ```no_run
    /// # fn main() -> tilewise::Result<()> {
    /// # let ctx = tilewise::Context::new()?;
    /// let x = tilewise::Tensor::from_npy(&ctx, "x.npy")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`File`](crate::Error) for a file that cannot be read, is no `.npy` file or has other
    /// elements, `Unsupported` for integers of 64 bits; otherwise as [`upload`](Self::upload).
    pub fn from_npy(context: &Context, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let refused = |why: std::io::Error| Error::io(format!("{}: {why}", path.display()), why);
        let file = File::open(path).map_err(refused)?;
        let len = file.metadata().map_err(refused)?.len();
        let array = Npy::read(file, len)
            .map_err(|error| error.map_text(|why| format!("{}: {why}", path.display())))?;
        let (dtype, bytes) = match array.scalar {
            Scalar::Dense(dtype) => (dtype, array.bytes),
            Scalar::F64 => {
                let (wide, _) = array.bytes.as_chunks();
                let narrow = |&wide: &[u8; 8]| (f64::from_le_bytes(wide) as f32).to_le_bytes();
                (DType::F32, wide.iter().flat_map(narrow).collect())
            }
            other => {
                return Err(Error::Unsupported(format!(
                    "{}: elements are {other}; tensors have f32, f16, i32 and u32 of numpy's types",
                    path.display()
                )));
            }
        };
        Self::from_bytes(context, dtype, &bytes, &array.shape)
    }
}
