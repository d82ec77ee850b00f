//! Scales and zeros as GPTQ and AWQ store them, `scales` `[G, N]`, and their config.

use super::affine::{Affine, Numbers};
use super::{Asked, Layout, Part, Parts, modes, of_mode};
use crate::claims::Expected;
use crate::config::{Packed as Said, Says};
use crate::raw::Element;
use tilewise_core::{DType, Result};

pub(super) const NEEDS: &[&str] = &["qweight", "qzeros", "scales"];

/// The shapes of the tensors.
pub(super) struct Shapes {
    /// The extents of `qweight`.
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) zero_columns: usize,
    pub(super) groups: usize,
    pub(super) n: usize,
    /// The type of `scales`.
    pub(super) scales: DType,
}

impl Shapes {
    pub(super) fn of(parts: &Parts<'_>) -> Result<Self> {
        let [codes, zeros, scales] =
            [parts.need("qweight")?, parts.need("qzeros")?, parts.need("scales")?];
        let is_words = |part: Part<'_>| part.is_words();
        let kind = match scales.raw.element {
            Element::Dense(dtype)
                if dtype.is_float()
                    && [codes, zeros].into_iter().chain(parts.get("g_idx")).all(is_words) =>
            {
                dtype
            }
            _ => {
                return Err(parts.refuse(
                    "qweight, qzeros and g_idx of I32 and scales of F16, BF16 or F32 are expected",
                ));
            }
        };
        let (&[rows, columns], &[zero_rows, zero_columns], &[groups, n]) =
            (codes.shape(), zeros.shape(), scales.shape())
        else {
            return Err(parts.refuse("qweight, qzeros and scales of two dimensions are expected"));
        };
        if [rows, columns, zero_columns, groups, n].contains(&0) || zero_rows != groups {
            let text = format!("{groups} groups of {n} columns and {zero_rows} of zeros");
            return Err(parts.refuse(text));
        }
        Ok(Shapes { rows, columns, zero_columns, groups, n, scales: kind })
    }
}

/// The words of a file beside the tensors on this matrix, whose shapes are those of `layout`.
pub(super) fn said<'a>(asked: &Asked<'a>, layout: &Layout) -> Result<Option<&'a Said>> {
    let own = layout.name.to_uppercase();
    let contradiction = |by: &str, other: &str| {
        let text = format!("{by} {}, but the shapes are those of {own}", other.to_uppercase());
        Err(asked.parts.contradiction(text))
    };
    let named = asked.expected.mode.as_deref().and_then(of_mode);
    let found = match asked.said {
        None => None,
        Some(said) => match &said.says {
            Says::Packed(packed) if packed.layout == layout.name => Some(packed),
            Says::Packed(other) => {
                return contradiction(&format!("{} says", said.file), other.layout);
            }
            // The arguments overrule a method that is not known.
            _ if named.is_some() => None,
            _ => {
                let text = "which is not read; if its layout is one of these, name the mode";
                let modes = modes().collect::<Vec<_>>().join(", ");
                return Err(asked.parts.unread(format!("{said}, {text}: {modes}")));
            }
        },
    };
    match named {
        Some(other) if other.name != layout.name => contradiction("the arguments say", other.name),
        _ => Ok(found),
    }
}

/// The matrix: groups are found by what is said of them and by the shapes.
pub(super) fn affine(
    asked: &Asked<'_>,
    said: Option<&Said>,
    shapes: &Shapes,
    (bits, k): (u32, usize),
) -> Result<Affine> {
    let Asked { parts, expected, .. } = asked;
    let groups = shapes.groups;
    let file = asked.said.map_or("", |said| &said.file);
    if let Some(said) = said.and_then(|said| said.bits).filter(|&said| said != u64::from(bits)) {
        let text = format!("{file} says {said} bits, but the shapes have {bits}");
        return Err(parts.contradiction(text));
    }
    // A group larger than K is all of K.
    let within = |group: u64| usize::try_from(group).map_or(k, |group| group.min(k));
    let said = said.and_then(|said| said.group).map(within);
    let (group, by) = match (said, expected.group.map(u64::from).map(within)) {
        (Some(said), Some(expected)) if said != expected => {
            return Err(parts.contradiction(format!(
                "the arguments say groups of {expected}, but {file} says groups of {said}"
            )));
        }
        (Some(said), _) => (said, format!("{file} says")),
        (None, Some(expected)) => (expected, "the arguments say".to_owned()),
        (None, None) if k.is_multiple_of(groups) => (k / groups, "the shapes say".to_owned()),
        (None, None) => {
            return Err(parts.refuse(format!(
                "K = {k} is no multiple of the {groups} groups: name the group's size"
            )));
        }
    };
    let counted = if group == 0 { 0 } else { k.div_ceil(group) };
    if counted != groups {
        let text = format!("{by} groups of {group}: K = {k} has {counted} of them");
        return Err(parts.contradiction(format!("{text}, but the file has {groups}")));
    }
    let numbers = Numbers { scales: shapes.scales, has_zeros: true };
    // The group was compared already, with a size beyond K as all of K.
    let expected = &Expected { group: None, ..(*expected).clone() };
    Affine::new(&Asked { expected, ..*asked }, bits, k, group, numbers)
}

/// The scale and the zero of a row and group. `zero` gives the zero of an element of `scales`.
pub(super) fn number<'a>(
    parts: &Parts<'a>,
    n: usize,
    zero: impl Fn(usize) -> u32 + 'a,
) -> Result<impl Fn(usize, usize) -> (f32, i32) + 'a> {
    let scales = parts.need("scales")?;
    Ok(move |row: usize, group: usize| {
        let at = group * n + row;
        (scales.number(at), zero(at) as i32)
    })
}
