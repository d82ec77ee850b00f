//! Arrays on the host: read from `.npy` or from models, written to `.npy` or `.safetensors`.

mod sink;
mod source;

pub(crate) use sink::Sink;
pub(crate) use source::Source;

use crate::failure::{Failure, Result, warn};
use tilewise_core::problem::DType;
use tilewise_files::Scalar;

/// An array as its file holds it.
#[derive(Debug, PartialEq)]
struct Raw {
    scalar: Scalar,
    shape: Vec<usize>,
    /// Little-endian, row-major.
    bytes: Vec<u8>,
}

/// A dense array of a type that the library computes with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array {
    /// Element type.
    pub(crate) dtype: DType,
    /// Extents, the slowest first.
    pub(crate) shape: Vec<usize>,
    /// Little-endian elements, row-major.
    pub(crate) bytes: Vec<u8>,
}

impl Raw {
    /// Converts floats: they keep their type, except that f64 becomes f32, with a warning on
    /// stderr. `name` is for messages.
    fn into_array(self, name: &str) -> Result<Array> {
        let Raw { scalar, shape, bytes } = self;
        match scalar {
            Scalar::Dense(dtype) if dtype.is_float() => Ok(Array { dtype, shape, bytes }),
            Scalar::F64 => {
                let (narrowed, overflowed) = narrow(&bytes);
                let lost = match overflowed {
                    0 => String::new(),
                    count => {
                        format!("; {count} finite elements exceed its range and became infinite")
                    }
                };
                warn(&format!("{name}: f64 narrowed to f32{lost}"));
                Ok(Array { dtype: DType::F32, shape, bytes: narrowed })
            }
            other => Err(Failure::other(format!(
                "{name}: elements are {}; those of a matrix may be f32, f16, bf16 or f64",
                other
            ))),
        }
    }

    /// Converts offsets, counts or indices: a vector of integers of 32 or 64 bits.
    fn into_words(self, name: &str, [one, many]: [&str; 2]) -> Result<Vec<u32>> {
        if self.shape.len() != 1 {
            return Err(Failure::other(format!(
                "{name}: shape {}; {many} are a vector",
                shape_text(&self.shape)
            )));
        }
        let wide: Vec<i128> = match self.scalar {
            Scalar::Dense(DType::U32) => {
                self.bytes.as_chunks().0.iter().map(|&b| u32::from_le_bytes(b).into()).collect()
            }
            Scalar::Dense(DType::I32) => {
                self.bytes.as_chunks().0.iter().map(|&b| i32::from_le_bytes(b).into()).collect()
            }
            Scalar::I64 => {
                self.bytes.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b).into()).collect()
            }
            Scalar::U64 => {
                self.bytes.as_chunks().0.iter().map(|&b| u64::from_le_bytes(b).into()).collect()
            }
            other => {
                return Err(Failure::other(format!(
                    "{name}: elements are {}; {many} may be u32, i32, u64 or i64",
                    other
                )));
            }
        };
        let narrow = |(index, &end): (usize, &i128)| {
            u32::try_from(end).map_err(|_| {
                Failure::other(format!(
                    "{name}: {one} {index} is {end}; it must lie in 0..={}",
                    u32::MAX
                ))
            })
        };
        wide.iter().enumerate().map(narrow).collect()
    }
}

/// Narrows f64 to f32, and counts the finite values that became infinite.
fn narrow(bytes: &[u8]) -> (Vec<u8>, usize) {
    let mut overflowed = 0;
    let mut narrowed = Vec::with_capacity(bytes.len() / 2);
    for &element in bytes.as_chunks().0 {
        let wide = f64::from_le_bytes(element);
        let value = wide as f32;
        overflowed += usize::from(wide.is_finite() && value.is_infinite());
        narrowed.extend(value.to_le_bytes());
    }
    (narrowed, overflowed)
}

/// A number of things: `1 group`, `2 groups`.
pub(crate) fn counted(count: usize, [one, many]: [&str; 2]) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A shape as messages write it: `[2,3]`.
pub(crate) fn shape_text(shape: &[usize]) -> String {
    let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!("[{}]", extents.join(","))
}
