//! Codes that are not read: of programs whose layout is none of [`ALL`], and of matrices whose
//! other tensors are missing.

use super::bitsandbytes::NF4;
use super::{ALL, Layout, name, prefix};
use crate::opening::Opened;
use crate::raw::{Element, Raw};

/// Codes of programs whose layouts are not read, by what follows the prefix.
const UNREAD: [(&str, &str); 6] = [
    ("q_weight", "EXL2"),
    ("trellis", "EXL3"),
    ("B", "Marlin"),
    ("codebooks", "AQLM"),
    ("centroids.weight", "VPTQ"),
    ("weight._data", "quanto"),
];

/// The tensor of a matrix whose codes are not read, and their program.
pub(crate) fn unread(raws: &[Raw], prefix: &str) -> Option<(String, &'static str)> {
    // Others of this name may be dense.
    let mut all = UNREAD.into_iter().filter(|(leaf, _)| *leaf != "B");
    all.find_map(|(leaf, method)| {
        let own = name(prefix, leaf);
        raws.iter().any(|raw| raw.name == own).then_some((own, method))
    })
}

/// Why a tensor holds no numbers but codes, if its name and type or `config.json` tell so.
pub(crate) fn codes(raw: &Raw, opened: &Opened) -> Option<String> {
    let is_number =
        |element: &Element| matches!(element, Element::Dense(dtype) if dtype.is_float());
    // bitsandbytes has codes in a column, of any type.
    let is_column = matches!(raw.shape[..], [_, 1]);
    let map = format!("{}.quant_map", raw.name);
    let is_mapped = is_column && opened.raws.iter().any(|other| other.name == map);
    if !is_mapped && (is_number(&raw.element) || raw.shape.is_empty()) {
        return None;
    }
    let shown = format!("{} is of type {}", raw.name, raw.element.name());
    let is = |leaf: &str| prefix(&raw.name, leaf).is_some();
    if let Some((_, method)) = UNREAD.iter().find(|(leaf, _)| is(leaf)) {
        return Some(format!("{shown}: codes of {method}, whose layout is not read"));
    }
    // A `weight` is read by its type.
    let is_own = |layout: &&Layout| !matches!(layout.needs[0], "" | "weight");
    let named = || ALL.into_iter().filter(is_own).find(|layout| is(layout.needs[0]));
    if let Some(layout) = if is_mapped { Some(&NF4) } else { named() } {
        let own = prefix(&raw.name, layout.needs[0])?;
        let is_missing = |leaf: &&&str| {
            let name = name(own, leaf);
            opened.raws.iter().all(|raw| raw.name != name)
        };
        let missing: Vec<_> = layout.needs.iter().filter(is_missing).copied().collect();
        let why = match &missing[..] {
            [] => "whose types are not read".to_owned(),
            missing => format!("whose {} is missing", missing.join(", ")),
        };
        return Some(format!("{shown}: codes of {}, {why}", layout.name));
    }
    let method = opened.config.unread().filter(|_| raw.name.contains("weight"))?;
    Some(format!("{shown}, and {method}, which is not read"))
}
