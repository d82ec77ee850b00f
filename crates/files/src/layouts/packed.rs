//! Scales and zeros as GPTQ and AWQ store them, `scales` `[G, N]`. w = scale · (code - zero), so
//! they become affine formats with f32 biases of -scale · zero. Scales of 16 bits times zeros of 9
//! are exact in f32.

use super::{Asked, Layout, Part, Parts, of_mode};
use crate::claims::{Expected, admit};
use crate::config::{Packed as Said, Says};
use std::ops::Range;
use tilewise_core::{DType, QuantFormat, Result};

pub(super) const NEEDS: &[&str] = &["qweight", "qzeros", "scales"];

/// A matrix whose shapes and types have been checked.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) bits: u32,
    pub(super) n: usize,
    pub(super) k: usize,
    /// Elements that share a scale in the file; the last group may have fewer.
    pub(super) group: usize,
    pub(super) groups: usize,
    pub(super) format: QuantFormat,
}

/// The shapes of the tensors.
pub(super) struct Shapes {
    /// Those of `qweight`.
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) zero_columns: usize,
    pub(super) groups: usize,
    pub(super) n: usize,
}

impl Shapes {
    pub(super) fn of(parts: &Parts<'_>) -> Result<Self> {
        let [codes, zeros, scales] =
            [parts.need("qweight")?, parts.need("qzeros")?, parts.need("scales")?];
        let is_words = |part: Part<'_>| part.is_words();
        if ![codes, zeros].into_iter().all(is_words)
            || !scales.is_float()
            || !parts.get("g_idx").is_none_or(is_words)
        {
            return Err(parts.refuse(
                "qweight, qzeros and g_idx of I32 and scales of F16, BF16 or F32 are expected",
            ));
        }
        let (&[rows, columns], &[zero_rows, zero_columns], &[groups, n]) =
            (codes.shape(), zeros.shape(), scales.shape())
        else {
            return Err(parts.refuse("qweight, qzeros and scales of two dimensions are expected"));
        };
        if [rows, columns, zero_columns, groups, n].contains(&0) || zero_rows != groups {
            let text = format!("{groups} groups of {n} columns and {zero_rows} of zeros");
            return Err(parts.refuse(text));
        }
        Ok(Shapes { rows, columns, zero_columns, groups, n })
    }
}

/// What a file beside the tensors says of this matrix, whose shapes are those of `layout`.
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
            Says::Unread if named.is_some() => None,
            Says::Unread => {
                let text = format!("{said}, which is not read; gptq and awq are");
                return Err(asked.parts.unread(text));
            }
        },
    };
    match named {
        Some(other) if other.name != layout.name => contradiction("the arguments say", other.name),
        _ => Ok(found),
    }
}

impl Packed {
    /// Finds the groups, by what is said of them and by the shapes.
    pub(super) fn new(
        asked: &Asked<'_>,
        said: Option<&Said>,
        shapes: &Shapes,
        (bits, k): (u32, usize),
    ) -> Result<Packed> {
        let Asked { parts, expected, .. } = asked;
        let (n, groups) = (shapes.n, shapes.groups);
        let file = asked.said.map_or("", |said| &said.file);
        if let Some(said) = said.and_then(|said| said.bits).filter(|&said| said != u64::from(bits))
        {
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
        // A group becomes as many blocks as fill it, with the same scale.
        let fits = |block: &u32| {
            k > 0 && group.is_multiple_of(*block as usize) && k.is_multiple_of(*block as usize)
        };
        let format = [128, 64, 32]
            .into_iter()
            .filter(fits)
            .find_map(|block| QuantFormat::affine(bits, block, DType::F32).ok());
        let format = format.ok_or_else(|| {
            parts.unread(format!(
                "groups of {group} and K = {k} are not whole blocks of 32, 64 or 128"
            ))
        })?;
        // Its blocks divide the groups that are expected, and its family is affine.
        let mode = expected.mode.clone().filter(|mode| of_mode(mode).is_none());
        admit(&Expected { group: None, mode, ..(*expected).clone() }, format)?;
        Ok(Packed { bits, n, k, group, groups, format })
    }

    /// The planes of scales and biases of some rows. `zero` gives the zero of an element of
    /// `scales`.
    pub(super) fn numbers(
        &self,
        scales: &Part<'_>,
        zero: impl Fn(usize) -> u32,
        rows: Range<usize>,
        [to_scales, to_biases]: [&mut [u8]; 2],
    ) {
        let block = self.format.block() as usize;
        let blocks = self.k / block;
        for j in 0..blocks {
            let group = j * block / self.group;
            for (i, n) in rows.clone().enumerate() {
                let at = group * self.n + n;
                let (scale, to) = (scales.number(at), (i * blocks + j) * 4);
                let bias = -(scale * zero(at) as f32);
                to_scales[to..to + 4].copy_from_slice(&scale.to_le_bytes());
                to_biases[to..to + 4].copy_from_slice(&bias.to_le_bytes());
            }
        }
    }
}
