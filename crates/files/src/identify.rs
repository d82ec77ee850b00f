//! Which format the planes of a matrix are in: the one that is named, or the only one that their
//! shapes fit.

use crate::claims::{Claim, agree};
use crate::raw::Raw;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use tilewise_core::quant::{Plane, Stored};
use tilewise_core::{DType, Error, QuantFormat, Result};

/// A quantized matrix, or a stack of them, as the shapes of its planes tell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) format: QuantFormat,
    /// `[N, K]`, and what lies before them.
    pub(crate) shape: Vec<usize>,
}

/// The planes that there are, by their names.
pub(crate) type Planes<'a> = BTreeMap<&'static str, &'a Raw>;

/// Name of the tensor that holds a plane of the quantized matrix `prefix`. An empty prefix gives
/// the bare plane.
pub fn tensor_name(prefix: &str, plane: &Plane) -> String {
    joined(prefix, plane.name)
}

/// The name of a part of the matrix `prefix`.
pub(crate) fn joined(prefix: &str, leaf: &str) -> String {
    if prefix.is_empty() { leaf.to_owned() } else { format!("{prefix}.{leaf}") }
}

/// The names of planes of all formats.
pub(crate) fn leaves() -> &'static BTreeSet<&'static str> {
    static LEAVES: OnceLock<BTreeSet<&str>> = OnceLock::new();
    LEAVES.get_or_init(|| {
        QuantFormat::all().flat_map(|format| format.planes()).map(|plane| plane.name).collect()
    })
}

/// Which format these planes of the matrix `prefix` are in. If none fits, `others` says where other
/// planes may be.
///
/// # Errors
/// [`File`](crate::Error) when no format fits, or claims contradict each other or the planes;
/// `Misuse` when several formats fit.
pub(crate) fn identify(
    prefix: &str,
    claims: &[Claim],
    planes: &Planes<'_>,
    others: &str,
) -> Result<Found> {
    agree(claims)?;
    // A plane too many is a sign of another format, not to be passed over.
    let exact = |format: &QuantFormat| {
        let own = format.planes();
        own.len() == planes.len() && own.iter().all(|plane| planes.contains_key(plane.name))
    };
    let fitting: Vec<Found> =
        QuantFormat::all().filter(exact).filter_map(|format| fit(format, planes)).collect();
    let wanted = |found: &&Found| claims.iter().all(|claim| claim.says.admits(found.format));
    let chosen: Vec<&Found> = fitting.iter().filter(wanted).collect();
    match chosen[..] {
        [only] => Ok(only.clone()),
        [] => {
            let why = misfit(prefix, claims, planes, &fitting);
            Err(Error::file(match &fitting[..] {
                [] => why + others,
                // A sound matrix of another format than is claimed.
                _ => format!("contradiction: {why}"),
            }))
        }
        _ => Err(Error::Misuse(format!("it may be {}: name the format", listed(&chosen)))),
    }
}

fn listed(found: &[&Found]) -> String {
    let names: Vec<_> =
        found.iter().map(|found| format!("{} {:?}", found.format, found.shape)).collect();
    names.join(" or ")
}

/// The matrix that the planes hold, if they are those of a format.
fn fit(format: QuantFormat, planes: &Planes<'_>) -> Option<Found> {
    let mut found: Option<Vec<usize>> = None;
    for plane in format.planes() {
        let raw = planes.get(plane.name)?;
        let (&length, rows) = raw.shape.split_last()?;
        let row = length.checked_mul(plane.of.bytes() as usize)?;
        let blocks = row / plane.bytes as usize;
        let k = blocks.checked_mul(format.block() as usize)?;
        let this = [rows, &[k]].concat();
        let whole = row.is_multiple_of(plane.bytes as usize)
            && raw.element.name() == element_of(plane)
            && !rows.is_empty();
        if !whole || found.is_some_and(|found| found != this) {
            return None;
        }
        found = Some(this);
    }
    found.map(|shape| Found { format, shape })
}

/// Why nothing fits.
fn misfit(prefix: &str, claims: &[Claim], planes: &Planes<'_>, fitting: &[Found]) -> String {
    let there: BTreeSet<&str> = planes.keys().copied().collect();
    let admitted: Vec<QuantFormat> = QuantFormat::all()
        .filter(|format| claims.iter().all(|claim| claim.says.admits(*format)))
        .collect();
    let is_there = |plane: &&Plane| {
        planes.get(plane.name).is_some_and(|raw| raw.element.name() == element_of(plane))
    };
    // The formats whose codes are there; if there are none, all that are admitted.
    let codes = |plane: &Plane| plane.of == Stored::Words && there.contains(plane.name);
    let own = |format: &&QuantFormat| format.planes().iter().any(codes);
    let formats: Vec<&QuantFormat> = match admitted.iter().any(|format| own(&format)) {
        true => admitted.iter().filter(own).collect(),
        false => admitted.iter().collect(),
    };
    let wanted: BTreeSet<&str> =
        formats.iter().flat_map(|format| format.planes()).map(|plane| plane.name).collect();
    // If every format is admitted, list the planes that are there.
    let names = if there.is_empty() || admitted.len() < QuantFormat::all().count() {
        &wanted | &there
    } else {
        there
    };
    let shown = |leaf: &&str| {
        planes
            .get(leaf)
            .map_or_else(|| format!("no tensor {:?}", joined(prefix, leaf)), |raw| raw.to_string())
    };
    let shown: Vec<_> = names.iter().map(shown).collect();
    let said: Vec<_> =
        claims.iter().map(|claim| format!("{} ({})", claim.says, claim.by)).collect();
    let wanted =
        if said.is_empty() { "any quantized format".to_owned() } else { said.join(" and ") };
    let instead = match fitting {
        [] => String::new(),
        _ => format!("; they fit {}", listed(&fitting.iter().collect::<Vec<_>>())),
    };
    // Counts a format if all these tensors are planes of it, by their types.
    let part =
        |format: &&&QuantFormat| format.planes().iter().filter(is_there).count() == planes.len();
    let lacks = |format: &&QuantFormat| {
        format.planes().iter().find(|plane| !planes.contains_key(plane.name))
    };
    let missing =
        formats.iter().filter(part).find_map(lacks).map(|plane| joined(prefix, plane.name));
    let missing = missing.map_or_else(String::new, |name| format!("; {name} is missing"));
    format!("these tensors are not {wanted}: {}{instead}{missing}", shown.join(", "))
}

/// The type of a plane's tensor, by its name in safetensors.
pub(crate) fn element_of(plane: &Plane) -> &'static str {
    match plane.of {
        Stored::Bytes => "U8",
        Stored::Words => "U32",
        Stored::Numbers(dtype) => name_of(dtype),
    }
}

/// A type by its name in safetensors.
pub(crate) fn name_of(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "F32",
        DType::F16 => "F16",
        DType::BF16 => "BF16",
        DType::I32 => "I32",
        DType::U32 => "U32",
    }
}
