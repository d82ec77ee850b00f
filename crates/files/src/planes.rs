//! Quantized weights as bytes of a safetensors file, in MLX's naming: each plane of a format
//! ([`QuantFormat::planes`]) is a tensor `PREFIX.NAME`, a row of it per row of W.

use crate::claims::{Claim, Expected};
use crate::identify::{Found as Matrix, joined, leaves};
use crate::model::{FORMAT, Model};
use crate::tensor::Kind;
use crate::write::{Output, write_to};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Cursor;
use tilewise_core::quant::{Plane, Quantized};
use tilewise_core::{Error, QuantFormat, Result};

/// Name of the tensor that holds a plane of the quantized matrix `prefix`. An empty prefix gives
/// the bare plane.
pub fn tensor_name(prefix: &str, plane: &Plane) -> String {
    joined(prefix, plane.name)
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
    only(all.collect())
}

fn only(prefixes: BTreeSet<&str>) -> Result<&str> {
    let prefixes: Vec<_> = prefixes.into_iter().collect();
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
/// `metadata` names, or the only one that fits. `tensor` gives the name of a tensor's type and its
/// shape, if there is one of this name.
///
/// # Errors
/// `Data` when the tensors do not fit the format, or any; `Unsupported` when the metadata names
/// another format than the one expected, or none that is known; `Data` with the candidates when
/// they fit several.
pub fn identify(
    prefix: &str,
    expected: Option<QuantFormat>,
    metadata: Option<&HashMap<String, String>>,
    tensor: impl Fn(&str) -> Option<(String, Vec<usize>)>,
) -> Result<Found> {
    let mut claims = Vec::new();
    if let Some(format) = expected {
        claims.push(Claim { by: "the arguments".into(), says: format.into() });
    }
    match metadata.and_then(|entries| entries.get(FORMAT)).map(|name| name.parse::<QuantFormat>()) {
        Some(Ok(format)) => claims.push(Claim { by: "the file's metadata".into(), says: format.into() }),
        // Another program's name for it, under the same key.
        Some(Err(error)) if expected.is_none() => return Err(error),
        _ => {}
    }
    let there: Vec<_> = leaves().iter().filter_map(|leaf| Some((*leaf, tensor(&joined(prefix, leaf))?))).collect();
    let planes = there.iter().map(|(leaf, (element, shape))| (*leaf, (&**element, &**shape))).collect();
    let Matrix { format, shape } = crate::identify::identify(prefix, &claims, &planes)?;
    match shape[..] {
        [n, k] => Ok(Found { format, n, k }),
        _ => Err(Error::Data(format!("{prefix:?} has shape {shape:?}; a matrix is expected"))),
    }
}

/// Reads the quantized matrix `prefix`, or the only one, from the bytes of a safetensors file, in
/// the format that is expected, or the one that the file tells.
///
/// # Errors
/// `Data` for a malformed or truncated file; as [`only_prefix`] and [`identify`].
pub fn from_bytes(bytes: &[u8], prefix: Option<&str>, expected: Option<QuantFormat>) -> Result<Quantized> {
    let name = format!("safetensors file of {} bytes", bytes.len());
    let model = Model::from_bytes(&name, bytes.to_vec())?;
    let quantized = model.tensors().filter(|tensor| matches!(tensor.kind(), Kind::Quantized(_) | Kind::Unclear(_)));
    let prefix = match prefix {
        Some(prefix) => prefix,
        None => only(quantized.map(|tensor| tensor.name()).collect())?,
    };
    let expected = expected.map(Expected::from).unwrap_or_default();
    model.get_as(prefix, &expected)?.quantized()
}

/// The bytes of a safetensors file that holds `weights` under `prefix`.
///
/// # Errors
/// `Data` when the file cannot be made.
pub fn to_bytes(weights: &Quantized, prefix: &str) -> Result<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    write_to(&mut bytes, vec![Output::quantized(prefix, weights)], &BTreeMap::new(), &mut |_, _| {})?;
    Ok(bytes.into_inner())
}

#[cfg(test)]
mod tests;
