//! The entries of GPTQ, AWQ and AutoRound on matrices of `qweight`, `qzeros` and `scales`.

use super::{Entries, Says};
use tilewise_core::Result;

/// How all matrices are stored. Nothing is required but the layout.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    /// The name of the layout.
    pub(crate) layout: &'static str,
    pub(crate) bits: Option<u64>,
    /// `u64::MAX` if K is one group.
    pub(crate) group: Option<u64>,
    /// Whether it is the second version of GPTQ, which stores zeros without taking 1 off.
    pub(crate) second_version: bool,
    /// Whether columns have an order, which `g_idx` tells.
    pub(crate) is_ordered: bool,
    /// Whether every zero is the middle of the codes, 2^(bits - 1).
    pub(crate) is_symmetric: bool,
}

pub(super) fn gptq(entries: &Entries<'_>) -> Result<Says> {
    match &*said(entries, &["checkpoint_format", "format"]) {
        "" | "gptq" | "1" => packed(entries, "gptq", false),
        "gptq_v2" | "2" => packed(entries, "gptq", true),
        _ => Ok(Says::Unread),
    }
}

pub(super) fn awq(entries: &Entries<'_>) -> Result<Says> {
    match &*said(entries, &["version", "checkpoint_format", "format"]) {
        "" | "gemm" => packed(entries, "awq", false),
        "gemv" => packed(entries, "awq-gemv", false),
        "gemv_fast" => packed(entries, "awq-gemv-fast", false),
        _ => Ok(Says::Unread),
    }
}

pub(super) fn auto_round(entries: &Entries<'_>) -> Result<Says> {
    let packing = entries.text("packing_format");
    match packing.strip_prefix("auto_round:").unwrap_or(&packing) {
        "auto_gptq" => packed(entries, "gptq", false),
        "auto_round" | "gptqmodel" => packed(entries, "gptq", true),
        "auto_awq" => packed(entries, "awq", false),
        _ => Ok(Says::Unread),
    }
}

/// The entry under the first of these keys that is there: a text in lower case, or JSON. GPTQModel
/// writes all, older programs one or none.
fn said(entries: &Entries<'_>, keys: &[&str]) -> String {
    let Some(key) = keys.iter().find(|key| entries.is_there(key)) else { return String::new() };
    let other = entries.map.get(*key).filter(|value| !value.is_string());
    other.map_or_else(|| entries.text(key), ToString::to_string)
}

fn packed(entries: &Entries<'_>, layout: &'static str, second_version: bool) -> Result<Says> {
    let (is_ordered, is_symmetric) = (entries.flag("desc_act"), entries.flag("sym"));
    let says = Packed { layout, bits: None, group: None, second_version, is_ordered, is_symmetric };
    // GPTQModel and AutoRound make exceptions by name or regular expression. Then only the shapes
    // tell.
    if ["dynamic", "extra_config"].into_iter().any(|key| entries.is_there(key)) {
        return Ok(Says::Packed(Packed { is_symmetric: false, ..says }));
    }
    Ok(Says::Packed(Packed {
        bits: entries.count(["bits", "w_bit"], None)?,
        group: entries.count(["group_size", "q_group_size"], Some(u64::MAX))?,
        ..says
    }))
}
