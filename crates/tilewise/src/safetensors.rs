//! Quantized weights in safetensors files: each plane of a format ([`QuantFormat::planes`]) is a
//! tensor `PREFIX.NAME`, a row of it per row of W. For the formats of MLX that is MLX's naming:
//! `PREFIX.weight` holds the codes, `PREFIX.scales` and `PREFIX.biases` (not all have them) what
//! turns them into numbers.
//!
//! Files are seen as bytes; opening, mapping and writing them is the caller's. So this works on wasm too.
//!
//! Shapes alone do not tell every format: 8 bits in groups of 32 look like 4 bits in groups of 64
//! with twice the K. [`to_bytes`] writes the format's name into the file's metadata. A file without
//! it is read as the format that the caller expects, or as the only one that its tensors fit; where
//! they fit several, the error lists them.

use ::safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::{BTreeSet, HashMap};
use tilewise_core::quant::{Plane, QuantFormat, Quantized, Stored};
use tilewise_core::{DType, Error, Result};

/// The metadata entry that names the format.
const KEY: &str = "quantization";

/// Name of the tensor that holds a plane of the quantized matrix `prefix`. An empty prefix gives the bare plane.
pub fn tensor_name(prefix: &str, plane: &Plane) -> String {
    if prefix.is_empty() { plane.name.into() } else { format!("{prefix}.{}", plane.name) }
}

/// The prefix of the only quantized matrix among tensors of these names.
///
/// # Errors
/// `Data`, with the prefixes found, when there is none or more than one.
pub fn only_prefix<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<&'a str> {
    let names: BTreeSet<&str> = names.into_iter().collect();
    let complete = |prefix: &str, format: QuantFormat| {
        format.planes().iter().all(|plane| names.contains(&*tensor_name(prefix, plane)))
    };
    let prefix = |name: &'a str, format: QuantFormat| {
        let rest = name.strip_suffix(format.planes()[0].name)?;
        let prefix = if rest.is_empty() { rest } else { rest.strip_suffix('.')? };
        complete(prefix, format).then_some(prefix)
    };
    let all = names.iter().flat_map(|name| QuantFormat::all().filter_map(move |format| prefix(name, format)));
    let prefixes: Vec<_> = all.collect::<BTreeSet<_>>().into_iter().collect();
    match prefixes[..] {
        [only] => Ok(only),
        [] => Err(Error::Data("the file holds no quantized weights, such as PREFIX.weight and PREFIX.scales".into())),
        _ => Err(Error::Data(format!(
            "{} quantized matrices, name one of them: {}",
            prefixes.len(),
            prefixes.join(", ")
        ))),
    }
}

/// A quantized matrix as a file's header describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its format.
    pub format: QuantFormat,
    /// Rows.
    pub n: usize,
    /// Columns.
    pub k: usize,
}

/// Which format the tensors of the matrix `prefix` are in: the one expected, the one that
/// `metadata` names, or the only one that fits. `tensor` gives type and shape of a tensor by its
/// name, if there is one.
///
/// # Errors
/// `Data` when the tensors do not fit the format, or any; `Unsupported` when the metadata names
/// another format than the one expected, or none that is known; `Data` with the candidates when
/// they fit several.
pub fn identify(
    prefix: &str,
    expected: Option<QuantFormat>,
    metadata: Option<&HashMap<String, String>>,
    tensor: impl Fn(&str) -> Option<(Dtype, Vec<usize>)>,
) -> Result<Found> {
    let named = metadata.and_then(|entries| entries.get(KEY)).map(|name| name.parse::<QuantFormat>());
    let wanted = match (expected, named) {
        (Some(expected), Some(Ok(named))) if expected != named => {
            return Err(Error::Unsupported(format!("the file says {KEY} = {named}; {expected} is expected")));
        }
        // Another program's name for it, under the same key.
        (Some(expected), _) => Some(expected),
        (None, named) => named.transpose()?,
    };
    let formats = QuantFormat::all().filter(|format| wanted.is_none_or(|wanted| wanted == *format));
    let fitting: Vec<_> = formats.filter_map(|format| fit(prefix, format, &tensor)).collect();
    match fitting[..] {
        [only] => Ok(only),
        [] => Err(Error::Data(misfit(prefix, wanted, &tensor))),
        _ => {
            let names: Vec<_> =
                fitting.iter().map(|found| format!("{} [{}, {}]", found.format, found.n, found.k)).collect();
            Err(Error::Data(format!("{prefix:?} may be {}: name the format", names.join(" or "))))
        }
    }
}

/// The matrix that the tensors hold, if they are planes of a format.
fn fit(prefix: &str, format: QuantFormat, tensor: &impl Fn(&str) -> Option<(Dtype, Vec<usize>)>) -> Option<Found> {
    let mut found = None;
    for plane in format.planes() {
        let (dtype, shape) = tensor(&tensor_name(prefix, plane))?;
        let [n, length] = shape[..] else { return None };
        let row = length.checked_mul(plane.of.bytes() as usize)?;
        let blocks = row / plane.bytes as usize;
        let this = Found { format, n, k: blocks.checked_mul(format.block() as usize)? };
        let whole = row.is_multiple_of(plane.bytes as usize) && dtype == type_of(plane);
        if !whole || found.is_some_and(|found| found != this) {
            return None;
        }
        found = Some(this);
    }
    found
}

/// Why nothing fits.
fn misfit(prefix: &str, wanted: Option<QuantFormat>, tensor: &impl Fn(&str) -> Option<(Dtype, Vec<usize>)>) -> String {
    let planes = QuantFormat::all().filter(|format| wanted.is_none_or(|wanted| wanted == *format));
    let names: BTreeSet<_> =
        planes.flat_map(|format| format.planes()).map(|plane| tensor_name(prefix, plane)).collect();
    let there = |name: &String| match tensor(name) {
        Some((dtype, shape)) => format!("{name} {dtype} {shape:?}"),
        None => format!("no tensor {name:?}"),
    };
    let there: Vec<_> = names.iter().map(there).collect();
    let wanted = wanted.map_or_else(|| "any quantized format".to_owned(), |wanted| wanted.to_string());
    format!("these tensors are not {wanted}: {}", there.join(", "))
}

fn type_of(plane: &Plane) -> Dtype {
    match plane.of {
        Stored::Bytes => Dtype::U8,
        Stored::Words | Stored::Numbers(DType::U32) => Dtype::U32,
        Stored::Numbers(DType::F32) => Dtype::F32,
        Stored::Numbers(DType::F16) => Dtype::F16,
        Stored::Numbers(DType::BF16) => Dtype::BF16,
        Stored::Numbers(DType::I32) => Dtype::I32,
    }
}

/// Reads the quantized matrix `prefix`, or the only one, from the bytes of a safetensors file, in
/// the format that is expected, or the one that the file tells (see [`identify`]).
///
/// # Errors
/// `Data` for a malformed or truncated file; as [`only_prefix`] and [`identify`].
pub fn from_bytes(bytes: &[u8], prefix: Option<&str>, expected: Option<QuantFormat>) -> Result<Quantized> {
    let malformed = |error| Error::Data(format!("safetensors file of {} bytes: {error}", bytes.len()));
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(malformed)?;
    let tensors = SafeTensors::deserialize(bytes).map_err(malformed)?;
    let names = tensors.names();
    let prefix = prefix.map_or_else(|| only_prefix(names.iter().copied()), Ok)?;
    let Found { format, n, k } = identify(prefix, expected, metadata.metadata().as_ref(), |name| {
        let view = tensors.tensor(name).ok()?;
        Some((view.dtype(), view.shape().to_vec()))
    })?;
    let plane = |plane| Ok(tensors.tensor(&tensor_name(prefix, plane)).map_err(malformed)?.data().to_vec());
    Quantized::from_planes(format, n, k, format.planes().iter().map(plane).collect::<Result<_>>()?)
}

/// The bytes of a safetensors file that holds `weights` under `prefix`.
///
/// # Errors
/// `Data` when the file cannot be made.
pub fn to_bytes(weights: &Quantized, prefix: &str) -> Result<Vec<u8>> {
    let failed = |error: ::safetensors::SafeTensorError| Error::Data(error.to_string());
    let view = |(plane, bytes): (&Plane, _)| {
        let bytes: &Vec<u8> = bytes;
        let columns = weights.k() / weights.format().block() as usize * (plane.bytes / plane.of.bytes()) as usize;
        let view = TensorView::new(type_of(plane), vec![weights.n(), columns], bytes).map_err(failed)?;
        Ok((tensor_name(prefix, plane), view))
    };
    let views = weights.format().planes().iter().zip(weights.planes()).map(view).collect::<Result<Vec<_>>>()?;
    let metadata = HashMap::from([(KEY.into(), weights.format().to_string())]);
    ::safetensors::serialize(views, Some(metadata)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three rows of two blocks.
    fn sample(format: QuantFormat) -> Quantized {
        let k = 2 * format.block() as usize;
        let weights: Vec<f32> = (0..3 * k).map(|i| (i as f32 * 0.7).sin()).collect();
        tilewise_core::quant::quantize(&weights, 3, k, format).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        for format in QuantFormat::all() {
            for prefix in ["", "w", "layers.0.w"] {
                let bytes = to_bytes(&sample(format), prefix).unwrap();
                assert_eq!(from_bytes(&bytes, None, None), Ok(sample(format)));
                assert_eq!(from_bytes(&bytes, Some(prefix), Some(format)), Ok(sample(format)));
                assert!(matches!(from_bytes(&bytes, Some("v"), None), Err(Error::Data(text)) if text.contains("\"v.")));
                for other in QuantFormat::all().filter(|other| *other != format) {
                    let refused = from_bytes(&bytes, None, Some(other)).unwrap_err().to_string();
                    assert!(refused.contains(other.name()) && refused.contains(format.name()), "{refused}");
                }
            }
        }
    }

    #[test]
    fn truncated_files_are_refused() {
        for format in QuantFormat::all() {
            let bytes = to_bytes(&sample(format), "w").unwrap();
            for len in 0..bytes.len() {
                assert!(matches!(from_bytes(&bytes[..len], None, None), Err(Error::Data(_))), "{len} bytes");
            }
        }
    }

    /// Identifies a matrix by type and shape of its tensors.
    fn described(expected: Option<QuantFormat>, tensors: &[(&str, Dtype, &[usize])]) -> Result<Found> {
        identify("w", expected, None, |name| {
            let (_, dtype, shape) = tensors.iter().find(|(own, ..)| name.strip_prefix("w.") == Some(own))?;
            Some((*dtype, shape.to_vec()))
        })
    }

    #[test]
    fn tensors_without_a_name_are_told_by_their_shapes() {
        let four = QuantFormat::affine(4, 64, DType::F16).unwrap();
        let tensors = |weight: (Dtype, &'static [usize]),
                       scales: (Dtype, &'static [usize]),
                       biases: (Dtype, &'static [usize])| {
            [("weight", weight.0, weight.1), ("scales", scales.0, scales.1), ("biases", biases.0, biases.1)]
        };
        let good = tensors((Dtype::U32, &[3, 16]), (Dtype::F16, &[3, 2]), (Dtype::F16, &[3, 2]));
        assert_eq!(described(Some(four), &good), Ok(Found { format: four, n: 3, k: 128 }));
        for bad in [
            tensors((Dtype::F32, &[3, 16]), (Dtype::F16, &[3, 2]), (Dtype::F16, &[3, 2])),
            tensors((Dtype::U32, &[1, 3, 16]), (Dtype::F16, &[3, 2]), (Dtype::F16, &[3, 2])),
            tensors((Dtype::U32, &[3, 12]), (Dtype::F16, &[3, 2]), (Dtype::F16, &[3, 2])),
            tensors((Dtype::U32, &[3, 16]), (Dtype::F16, &[3, 4]), (Dtype::F16, &[3, 4])),
            tensors((Dtype::U32, &[3, 16]), (Dtype::F16, &[2, 2]), (Dtype::F16, &[2, 2])),
            tensors((Dtype::U32, &[3, 16]), (Dtype::F16, &[3, 2]), (Dtype::F16, &[2, 3])),
            tensors((Dtype::U32, &[3, 16]), (Dtype::F16, &[3, 2]), (Dtype::F32, &[3, 2])),
            tensors((Dtype::U32, &[3, 16]), (Dtype::I32, &[3, 2]), (Dtype::I32, &[3, 2])),
        ] {
            assert!(matches!(described(Some(four), &bad), Err(Error::Data(text)) if text.contains("w.scales")));
        }
        assert!(matches!(described(None, &[]), Err(Error::Data(text)) if text.contains("no tensor \"w.weight\"")));
    }

    #[test]
    fn the_prefix_is_found_when_there_is_one() {
        assert_eq!(only_prefix(["a.weight", "a.scales", "a.biases", "norm.weight"]), Ok("a"));
        assert_eq!(only_prefix(["weight", "scales", "biases"]), Ok(""));
        assert!(matches!(only_prefix(["a.weight", "rescales"]), Err(Error::Data(_))));
        let two = ["a.scales", "a.weight", "a.biases", "b.scales", "b.weight", "b.biases"];
        assert!(matches!(only_prefix(two), Err(Error::Data(text)) if text.contains("a, b")));
    }

    #[test]
    fn metadata_that_contradicts_is_refused() {
        let format = QuantFormat::affine(4, 64, DType::F16).unwrap();
        let with = |name: &str| HashMap::from([(KEY.to_string(), name.to_string())]);
        for (name, expected) in [("affine-4bit-g64-f32", Some(format)), ("nonsense", None)] {
            let refused = identify("w", expected, Some(&with(name)), |_| None);
            assert!(matches!(refused, Err(Error::Unsupported(text)) if text.contains(name)));
        }
    }
}
