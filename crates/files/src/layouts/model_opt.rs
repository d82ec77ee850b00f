//! NVIDIA's ModelOpt: nvfp4, whose planes and factor have other names.

use super::{COMFY, Layout, is_plain, planes};
use tilewise_core::QuantFormat;

pub(super) const LAYOUT: Layout = Layout {
    name: "modelopt",
    needs: &["weight", "weight_scale", "weight_scale_2"],
    may: &[],
    notes: COMFY,
    modes: &[],
    bits: &[],
    is: |parts| {
        let is = |leaf, kind| parts.get(leaf).is_some_and(|part| part.kind() == kind);
        is("weight", "U8") && is("weight_scale", "F8_E4M3")
    },
    read: |asked| {
        is_plain(&asked.parts)?;
        let factor = asked.parts.need("weight_scale_2")?.factor()?;
        planes::read(asked, QuantFormat::NVFP4, Some(factor))
    },
};
