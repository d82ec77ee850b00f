//! Which format the planes of a matrix are in: the one that is named, or the only one that their
//! shapes fit.

use crate::claims::{Claim, agree};
use std::collections::BTreeSet;
use tilewise_core::quant::{Plane, Stored};
use tilewise_core::{Error, QuantFormat, Result};

/// A quantized matrix, or a stack of them, as the shapes of its planes tell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) format: QuantFormat,
    /// `[N, K]`, and what lies before them.
    pub(crate) shape: Vec<usize>,
}

/// A tensor by its name: the name of its elements' type, and its shape.
pub(crate) type Lookup<'a> = dyn Fn(&str) -> Option<(String, Vec<usize>)> + 'a;

/// Name of the tensor that holds a plane of the quantized matrix `prefix`. An empty prefix gives the
/// bare plane.
pub(crate) fn joined(prefix: &str, leaf: &str) -> String {
    if prefix.is_empty() { leaf.to_owned() } else { format!("{prefix}.{leaf}") }
}

/// The names of planes of all formats.
pub(crate) fn leaves() -> BTreeSet<&'static str> {
    QuantFormat::all().flat_map(|format| format.planes()).map(|plane| plane.name).collect()
}

/// Which format the tensors of the matrix `prefix` are in.
///
/// # Errors
/// `Unsupported` when claims contradict each other; `Data` when no format fits, or several do.
pub(crate) fn identify(prefix: &str, claims: &[Claim], tensor: &Lookup<'_>) -> Result<Found> {
    agree(claims)?;
    // A plane too many is a sign of another format, not to be passed over.
    let there: BTreeSet<&str> = leaves().into_iter().filter(|leaf| tensor(&joined(prefix, leaf)).is_some()).collect();
    let exact = |format: &QuantFormat| format.planes().iter().map(|plane| plane.name).collect::<BTreeSet<_>>() == there;
    let fitting: Vec<Found> =
        QuantFormat::all().filter(exact).filter_map(|format| fit(prefix, format, tensor)).collect();
    let wanted = |found: &&Found| claims.iter().all(|claim| claim.says.admits(found.format));
    let chosen: Vec<&Found> = fitting.iter().filter(wanted).collect();
    match chosen[..] {
        [only] => Ok(only.clone()),
        [] => Err(Error::Data(misfit(prefix, claims, &there, &fitting, tensor))),
        _ => Err(Error::Data(format!("{prefix:?} may be {}: name the format", listed(&chosen)))),
    }
}

fn listed(found: &[&Found]) -> String {
    let names: Vec<_> = found.iter().map(|found| format!("{} {:?}", found.format, found.shape)).collect();
    names.join(" or ")
}

/// The matrix that the tensors hold, if they are planes of a format.
fn fit(prefix: &str, format: QuantFormat, tensor: &Lookup<'_>) -> Option<Found> {
    let mut found: Option<Found> = None;
    for plane in format.planes() {
        let (element, shape) = tensor(&joined(prefix, plane.name))?;
        let (&length, rows) = shape.split_last()?;
        let row = length.checked_mul(plane.of.bytes() as usize)?;
        let blocks = row / plane.bytes as usize;
        let k = blocks.checked_mul(format.block() as usize)?;
        let this = Found { format, shape: [rows, &[k]].concat() };
        let whole = row.is_multiple_of(plane.bytes as usize) && element == element_of(plane) && !rows.is_empty();
        if !whole || found.is_some_and(|found| found != this) {
            return None;
        }
        found = Some(this);
    }
    found
}

/// Why nothing fits.
fn misfit(prefix: &str, claims: &[Claim], there: &BTreeSet<&str>, fitting: &[Found], tensor: &Lookup<'_>) -> String {
    let formats = QuantFormat::all().filter(|format| claims.iter().all(|claim| claim.says.admits(*format)));
    let planes: BTreeSet<&str> = formats.flat_map(|format| format.planes()).map(|plane| plane.name).collect();
    let names = if there.is_empty() || planes.len() < leaves().len() { &planes | there } else { there.clone() };
    let shown = |leaf: &&str| {
        let name = joined(prefix, leaf);
        match tensor(&name) {
            Some((element, shape)) => format!("{name} {element} {shape:?}"),
            None => format!("no tensor {name:?}"),
        }
    };
    let shown: Vec<_> = names.iter().map(shown).collect();
    let said: Vec<_> = claims.iter().map(|claim| format!("{} ({})", claim.says, claim.by)).collect();
    let wanted = if said.is_empty() { "any quantized format".to_owned() } else { said.join(" and ") };
    let instead = match fitting {
        [] => String::new(),
        _ => format!("; they fit {}", listed(&fitting.iter().collect::<Vec<_>>())),
    };
    format!("these tensors are not {wanted}: {}{instead}", shown.join(", "))
}

/// The type of a plane's tensor, by its name in safetensors.
pub(crate) fn element_of(plane: &Plane) -> String {
    match plane.of {
        Stored::Bytes => "U8".to_owned(),
        Stored::Words => "U32".to_owned(),
        Stored::Numbers(dtype) => dtype.name().to_uppercase(),
    }
}
