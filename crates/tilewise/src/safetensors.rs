//! Quantized weights in safetensors files, in MLX's naming: `PREFIX.weight` holds the codes (u32 \[N, K·bits/32\]), `PREFIX.scales`
//! and `PREFIX.biases` (\[N, K/group\], f32, f16 or bf16) what turns them into numbers.
//!
//! Files are seen as bytes; opening, mapping and writing them is the caller's. So this works on wasm too.
//!
//! Shapes alone cannot tell every combination of bits and group size apart: 8 bits in groups of 32 look like 4 bits in groups of 64
//! with twice the K. MLX keeps the two numbers in a `config.json` beside the file. [`to_bytes`] writes them into the file's
//! metadata, and [`from_bytes`] refuses a file whose metadata contradicts the format that it reads.

use ::safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::HashMap;
use tilewise_core::quant::{QuantFormat, Quantized};
use tilewise_core::{DType, Error, Result};

/// Metadata entries that [`to_bytes`] writes.
const BITS: &str = "bits";
/// As [`BITS`].
const GROUP_SIZE: &str = "group_size";

/// Name of a part (`weight`, `scales` or `biases`) of the quantized matrix `prefix`. An empty prefix gives the bare part.
pub fn part_name(prefix: &str, part: &str) -> String {
    if prefix.is_empty() { part.into() } else { format!("{prefix}.{part}") }
}

/// The prefix of the only quantized matrix among tensors of these names.
///
/// Errors: `Error::Data`, with the prefixes found, when there is none or more than one.
pub fn only_prefix<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<&'a str> {
    let mut prefixes: Vec<&str> = names
        .into_iter()
        .filter_map(|name| match name.strip_suffix("scales") {
            Some("") => Some(""),
            Some(rest) => rest.strip_suffix('.'),
            None => None,
        })
        .collect();
    prefixes.sort_unstable();
    match prefixes[..] {
        [only] => Ok(only),
        [] => Err(Error::Data("no tensor PREFIX.scales: the file holds no quantized weights".into())),
        _ => Err(Error::Data(format!(
            "{} quantized matrices, name one of them: {}",
            prefixes.len(),
            prefixes.join(", ")
        ))),
    }
}

/// Reads the quantized matrix `prefix`, or the only one, from the bytes of a safetensors file. The format is
/// [`QuantFormat::AFFINE4_G64`].
///
/// Errors: `Error::Data` for a malformed or truncated file, a missing part, or parts whose types or shapes do not fit together.
pub fn from_bytes(bytes: &[u8], prefix: Option<&str>) -> Result<Quantized> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| malformed(bytes.len(), &error))?;
    if let Some(entries) = metadata.metadata() {
        check_metadata(entries, QuantFormat::AFFINE4_G64)?;
    }
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| malformed(bytes.len(), &error))?;
    let names = tensors.names();
    let prefix = prefix.map_or_else(|| only_prefix(names.iter().copied()), Ok)?;
    let part = |part| {
        let name = part_name(prefix, part);
        tensors.tensor(&name).map_err(|_| Error::Data(format!("no tensor {name:?} among {}", tensors.len())))
    };
    from_views(&part("weight")?, &part("scales")?, &part("biases")?)
}

/// Puts a matrix in the format [`QuantFormat::AFFINE4_G64`] together from its three tensors.
///
/// Errors: `Error::Data` when their types or shapes do not fit together.
pub fn from_views(weight: &TensorView<'_>, scales: &TensorView<'_>, biases: &TensorView<'_>) -> Result<Quantized> {
    let format = QuantFormat::AFFINE4_G64;
    let &[n, words] = weight.shape() else {
        return Err(Error::Data(format!(
            "quantized weight of shape {:?}; only matrices [N, K·bits/32] are read",
            weight.shape()
        )));
    };
    if weight.dtype() != Dtype::U32 {
        return Err(Error::Data(format!("quantized weight of {}; codes are U32", weight.dtype())));
    }
    let per_word = u32::BITS as usize / format.bits() as usize;
    let words_per_group = format.group_size() as usize / per_word;
    if !words.is_multiple_of(words_per_group) || scales.shape() != [n, words / words_per_group] {
        return Err(Error::Unsupported(format!(
            "weight of shape {:?} with scales of shape {:?}: {format} has one scale per {words_per_group} words",
            weight.shape(),
            scales.shape()
        )));
    }
    if biases.shape() != scales.shape() || biases.dtype() != scales.dtype() {
        return Err(Error::Data(format!(
            "scales are {} {:?}, biases {} {:?}; they must be alike",
            scales.dtype(),
            scales.shape(),
            biases.dtype(),
            biases.shape()
        )));
    }
    let scale_dtype = match scales.dtype() {
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        other => return Err(Error::Data(format!("scales of {other}; they are F32, F16 or BF16"))),
    };
    let codes = weight.data().as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
    let (scales, biases) = (scales.data().to_vec(), biases.data().to_vec());
    Quantized::from_parts(format, n, words * per_word, scale_dtype, codes, scales, biases)
}

/// The bytes of a safetensors file that holds `weights` under `prefix`.
///
/// Errors: `Error::Data` when the parts of `weights` are not as long as its shape says.
pub fn to_bytes(weights: &Quantized, prefix: &str) -> Result<Vec<u8>> {
    let (bits, group_size) = (weights.format().bits(), weights.format().group_size());
    let words = weights.k() * bits as usize / u32::BITS as usize;
    let groups = weights.k() / group_size as usize;
    let dtype = match weights.scale_dtype() {
        DType::F32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::I32 => Dtype::I32,
        DType::U32 => Dtype::U32,
    };
    let codes: Vec<u8> = weights.codes().iter().flat_map(|word| word.to_le_bytes()).collect();
    let view = |dtype, columns, bytes| {
        TensorView::new(dtype, vec![weights.n(), columns], bytes).map_err(|error| Error::Data(error.to_string()))
    };
    let parts = [
        (part_name(prefix, "weight"), view(Dtype::U32, words, &codes)?),
        (part_name(prefix, "scales"), view(dtype, groups, weights.scales())?),
        (part_name(prefix, "biases"), view(dtype, groups, weights.biases())?),
    ];
    let metadata = HashMap::from([(BITS.into(), bits.to_string()), (GROUP_SIZE.into(), group_size.to_string())]);
    ::safetensors::serialize(parts, Some(metadata)).map_err(|error| Error::Data(error.to_string()))
}

/// Refuses metadata that names another number of bits or another group size than `format` has.
///
/// Errors: `Error::Unsupported`.
pub fn check_metadata(entries: &HashMap<String, String>, format: QuantFormat) -> Result<()> {
    for (key, expected) in [(BITS, format.bits()), (GROUP_SIZE, format.group_size())] {
        if let Some(found) = entries.get(key).filter(|&found| *found != expected.to_string()) {
            return Err(Error::Unsupported(format!("the file says {key} = {found}; {expected} is read")));
        }
    }
    Ok(())
}

fn malformed(len: usize, error: &dyn std::fmt::Display) -> Error {
    Error::Data(format!("safetensors file of {len} bytes: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(scale_dtype: DType) -> Quantized {
        let bytes = scale_dtype.bytes() as u8;
        let codes = (0..48).map(|i| i * 0x0123_4567).collect();
        let (scales, biases) = ((0..6 * bytes).collect(), (100..100 + 6 * bytes).collect());
        Quantized::from_parts(QuantFormat::AFFINE4_G64, 3, 128, scale_dtype, codes, scales, biases).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        for dtype in DType::ALL {
            for prefix in ["", "w", "layers.0.w"] {
                let bytes = to_bytes(&sample(dtype), prefix).unwrap();
                assert_eq!(from_bytes(&bytes, None), Ok(sample(dtype)));
                assert_eq!(from_bytes(&bytes, Some(prefix)), Ok(sample(dtype)));
                assert!(matches!(from_bytes(&bytes, Some("v")), Err(Error::Data(_))));
            }
        }
    }

    #[test]
    fn truncated_files_are_refused() {
        let bytes = to_bytes(&sample(DType::F16), "w").unwrap();
        for len in 0..bytes.len() {
            assert!(matches!(from_bytes(&bytes[..len], None), Err(Error::Data(_))), "{len} bytes");
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let zeros = [0; 4 * 48];
        let view = |dtype, shape: &[usize]| {
            let len = shape.iter().product::<usize>() * dtype_size(dtype);
            TensorView::new(dtype, shape.to_vec(), &zeros[..len]).unwrap()
        };
        let good = (view(Dtype::U32, &[3, 16]), view(Dtype::F32, &[3, 2]), view(Dtype::F32, &[3, 2]));
        assert!(from_views(&good.0, &good.1, &good.2).is_ok());
        for (weight, scales, biases) in [
            (view(Dtype::F32, &[3, 16]), good.1.clone(), good.2.clone()),
            (view(Dtype::U32, &[1, 3, 16]), good.1.clone(), good.2.clone()),
            (view(Dtype::U32, &[3, 12]), good.1.clone(), good.2.clone()),
            (good.0.clone(), view(Dtype::F32, &[3, 4]), view(Dtype::F32, &[3, 4])),
            (good.0.clone(), view(Dtype::F32, &[2, 2]), view(Dtype::F32, &[2, 2])),
            (good.0.clone(), good.1.clone(), view(Dtype::F32, &[2, 3])),
            (good.0.clone(), good.1.clone(), view(Dtype::F16, &[3, 2])),
            (good.0.clone(), view(Dtype::I32, &[3, 2]), view(Dtype::I32, &[3, 2])),
        ] {
            assert!(matches!(from_views(&weight, &scales, &biases), Err(Error::Data(_) | Error::Unsupported(_))));
        }
    }

    fn dtype_size(dtype: Dtype) -> usize {
        dtype.bitsize() / 8
    }

    #[test]
    fn the_prefix_is_found_when_there_is_one() {
        assert_eq!(only_prefix(["a.weight", "a.scales", "a.biases", "norm.weight"]), Ok("a"));
        assert_eq!(only_prefix(["weight", "scales", "biases"]), Ok(""));
        assert!(matches!(only_prefix(["a.weight", "rescales"]), Err(Error::Data(_))));
        assert!(matches!(only_prefix(["a.scales", "b.scales"]), Err(Error::Data(text)) if text.contains("a, b")));
    }

    #[test]
    fn metadata_that_contradicts_is_refused() {
        let with = |bits: &str| HashMap::from([(BITS.to_string(), bits.to_string())]);
        assert_eq!(check_metadata(&with("4"), QuantFormat::AFFINE4_G64), Ok(()));
        assert!(matches!(check_metadata(&with("8"), QuantFormat::AFFINE4_G64), Err(Error::Unsupported(_))));
    }
}
