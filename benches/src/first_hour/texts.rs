//! Every text in MSL.

use crate::shapes::Shape;
use std::collections::HashSet;
use tilewise::planner::Caps;
use tilewise::{DType, QuantFormat};
use tilewise_core::kernel::{KernelDef, Language, Variant};
use tilewise_core::plan::{Forced, plan};

/// A chip for each of the two ways to treat bf16: the first generations widen it.
const GENERATIONS: [&str; 2] = ["Apple M1", "Apple M4"];

/// The texts of every kernel in MSL, in every variant, type, layout and format of weights, for
/// sizes that vectors divide and for others, each with the kernel, the variant and the shape of the
/// first product that wants it. Each text is there once. Texts that this version of Metal's
/// language (310 for 3.1) lacks are left out.
pub(super) fn all(version: u32) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    let mut known = HashSet::new();
    for name in GENERATIONS {
        let caps = Caps { name: name.to_owned(), msl_version: Some(version), ..documented() };
        for (kernel, variant) in variants() {
            let forced = Forced {
                kernel: kernel.name.to_owned(),
                variant: Some(variant.name.to_owned()),
                pad: None,
                splits: Some(1),
            };
            for shape in shapes(variant) {
                // A version without bf16 has no kernel for it.
                let Ok(plan) = plan(&shape.problem(), &caps, &tilewise_msl::LIBRARY, Some(&forced))
                else {
                    continue;
                };
                for pass in plan.passes.iter().filter(|pass| pass.language == Language::Msl) {
                    let text = tilewise_msl::assemble(pass);
                    if known.insert(text.clone()) {
                        texts.push((format!("{} {}", pass.label, shape.name), text));
                    }
                }
            }
        }
    }
    texts
}

/// The recorded caps of an Apple GPU.
fn documented() -> Caps {
    let (_, caps) = tilewise_core::caps::RECORDED
        .iter()
        .find(|(name, _)| *name == "apple-m4-max")
        .expect("it is recorded");
    caps()
}

fn variants() -> impl Iterator<Item = (&'static KernelDef, &'static Variant)> {
    let msl =
        tilewise_msl::LIBRARY.kernels.iter().filter(|kernel| kernel.kit.language == Language::Msl);
    msl.flat_map(|kernel| kernel.variants.iter().map(move |variant| (kernel, variant)))
}

/// Shapes of two tiles along M and N, whose K every block divides; and shapes of one row and column
/// more, with a K that vectors do not divide.
fn shapes(variant: &Variant) -> Vec<Shape> {
    let [m, n] = [variant.bm, variant.bn].map(|size| (2 * size).next_multiple_of(8) as usize);
    let mut names = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::BF16].map(DType::name) {
        for layout in ["NN", "NT", "TN", "TT"] {
            names.push(format!("{m}x{n}x512:{layout}:{dtype}"));
            names.push(format!("{}x{}x519:{layout}:{dtype}", m + 1, n + 1));
        }
        for format in QuantFormat::kinds() {
            names.push(format!("{m}x{n}x512:NT:{dtype}:{format}"));
        }
    }
    names.iter().map(|name| name.parse().expect("it is a shape")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_variant_and_version() {
        let [old, new] = [240, 310].map(all);
        let bf16 = |(label, _): &(String, String)| label.contains(":bf16");
        assert!(!old.iter().any(bf16) && new.iter().any(bf16));
        for (kernel, variant) in variants() {
            let name = format!("{}/{}", kernel.name, variant.name);
            for texts in [&old, &new] {
                assert!(texts.iter().any(|(label, _)| label.starts_with(&name)), "{name}");
            }
        }
        // Texts differ by the generation of the chip: one stages bf16 as f32, the other as bf16.
        for staged in [DType::F32, DType::BF16] {
            let line = format!("constexpr constant unsigned int STAGED = {};", staged.number());
            assert!(new.iter().any(|(_, text)| text.contains(&line)), "{line}");
        }
    }
}
