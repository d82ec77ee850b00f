//! The format that weights are converted to.

use crate::array::shape_text;
use crate::failure::Result;
use crate::role::{self, Kept};
use std::fmt;
use tilewise_core::convert::{decode, encode};
use tilewise_core::problem::DType;
use tilewise_core::quant::{QuantFormat, dequantize, nearest, quantize};
use tilewise_files::{TensorKind, TensorView};

/// The dense types.
const DENSE: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// An element type or a quantized format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    Dense(DType),
    Quantized(QuantFormat),
}

impl std::str::FromStr for Target {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        let lower = name.to_ascii_lowercase();
        if let Some(dtype) = DENSE.into_iter().find(|dtype| dtype.name() == lower) {
            return Ok(Target::Dense(dtype));
        }
        if let Ok(format) = lower.parse() {
            return Ok(Target::Quantized(format));
        }
        let names =
            DENSE.iter().map(|dtype| dtype.name()).chain(QuantFormat::all().map(QuantFormat::name));
        Err(format!(
            "no format is named {name:?}; the nearest names are {}",
            nearest(&lower, names).join(", ")
        ))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Dense(dtype) => dtype.fmt(f),
            Target::Quantized(format) => format.fmt(f),
        }
    }
}

/// Whether a shape is that of a matrix [N,K] or a stack [E,N,K].
pub(crate) fn is_of_weights(shape: &[usize]) -> bool {
    matches!(shape.len(), 2 | 3)
}

impl Target {
    /// The kind of a tensor in this format.
    pub(crate) fn kind(self) -> TensorKind {
        match self {
            Target::Dense(dtype) => TensorKind::Dense(dtype),
            Target::Quantized(format) => TensorKind::Quantized(format),
        }
    }

    /// Whether a tensor of this kind is in this format.
    pub(crate) fn is(self, kind: &TensorKind) -> bool {
        self.kind() == *kind
    }

    /// Fails, with the format's own words, if weights can only be read in this format.
    pub(crate) fn admit(self) -> Result<()> {
        if let Target::Quantized(format) = self {
            quantize(&[], 0, 0, format)?;
        }
        Ok(())
    }

    /// The reason to copy a tensor; `None` if it is converted. `named` says that the caller named
    /// it, so that its role does not count.
    pub(crate) fn refusal(self, tensor: &TensorView<'_>, named: bool) -> Option<Kept> {
        if tensor.is_stray() {
            let why = "a plane of quantized weights; the other planes are missing";
            return Some(Kept::new("strays", why));
        }
        let shape = tensor.shape();
        match tensor.kind() {
            kind if self.is(kind) => {
                return Some(Kept::new("in the format", format!("already {self}")));
            }
            TensorKind::Quantized(_) => {}
            TensorKind::Dense(dtype) if dtype.is_float() => {
                if !is_of_weights(shape) {
                    let why = format!("shape {}, not [N,K] or [E,N,K]", shape_text(shape));
                    let class = if shape.len() == 1 { "vectors" } else { "other shapes" };
                    return Some(Kept::new(class, why));
                }
                if !named && let Some(kept) = role::kept(tensor.stored_name(), shape) {
                    return Some(kept);
                }
            }
            kind => return Some(Kept::new("other types", format!("elements of {kind}"))),
        }
        let Target::Quantized(format) = self else { return None };
        let (n, k) = tensor.matrix().ok()?;
        let why = match format.sizes(n, k).err()? {
            tilewise_core::Error::Shape(why) => why,
            other => other.to_string(),
        };
        Some(Kept::new("no whole blocks", why))
    }

    /// Number of planes.
    pub(crate) fn planes(self) -> usize {
        match self {
            Target::Dense(_) => 1,
            Target::Quantized(format) => format.planes().len(),
        }
    }

    /// Bytes of a matrix.
    pub(crate) fn size(self, n: usize, k: usize) -> Result<u64> {
        Ok(match self {
            Target::Dense(dtype) => (n * k) as u64 * dtype.bytes(),
            Target::Quantized(format) => format.sizes(n, k)?.iter().map(|&size| size as u64).sum(),
        })
    }

    /// Stores some rows: gives their planes, and the weights that the planes stand for.
    pub(crate) fn store(
        self,
        values: &[f32],
        n: usize,
        k: usize,
    ) -> tilewise_core::Result<(Vec<Vec<u8>>, Vec<f32>)> {
        match self {
            Target::Dense(dtype) => {
                let bytes = encode(dtype, values);
                let restored = decode(dtype, &bytes)?;
                Ok((vec![bytes], restored))
            }
            Target::Quantized(format) => {
                let weights = quantize(values, n, k, format)?;
                Ok((weights.planes().to_vec(), dequantize(&weights)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_and_formats_are_known_and_others_have_neighbours() {
        assert_eq!("BF16".parse(), Ok(Target::Dense(DType::BF16)));
        assert_eq!("mxfp4".parse::<Target>().unwrap().to_string(), "mxfp4");
        let why = "mxpf4".parse::<Target>().unwrap_err();
        assert_eq!(why, "no format is named \"mxpf4\"; the nearest names are mxfp4, mxfp8, nvfp4");
        let why = "affine".parse::<Target>().unwrap_err();
        assert!(why.contains("the nearest names are affine-"), "{why}");
        assert!("fp16".parse::<Target>().unwrap_err().contains("the nearest names are f16"));
        assert!("i32".parse::<Target>().is_err());
    }

    #[test]
    fn formats_that_are_only_read_refuse() {
        for format in QuantFormat::all() {
            assert_eq!(Target::Quantized(format).admit().is_ok(), format.quantizes(), "{format}");
        }
    }
}
