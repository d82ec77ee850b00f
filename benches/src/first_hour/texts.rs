//! Every text in MSL, and texts that are changed from the library's.

use super::runner::assembled;
use crate::shapes::Shape;
use std::collections::HashSet;
use tilewise::planner::Caps;
use tilewise::{DType, Error, QuantFormat, Result};
use tilewise_core::kernel::{KernelDef, Language, Variant};
use tilewise_core::plan::{Forced, plan};

/// A text, named by its kernel, types and layout.
pub struct Text {
    /// Kernel, variant and shape of the first product that wants it.
    pub label: String,
    /// The whole text.
    pub text: String,
    /// Threads of a threadgroup.
    pub threads: u32,
    /// Whether its pipeline is looked at: whole tiles, A stored along K, and weights that are dense
    /// or meet f16.
    pub typical: bool,
}

/// A chip for each of the two ways to treat bf16: the first generations widen it.
pub const GENERATIONS: [&str; 2] = ["Apple M1", "Apple M4"];

/// The texts of every kernel in MSL, in every variant, type, layout and format of weights, for
/// sizes that vectors divide and for others. Each text is there once. Texts that this version of
/// Metal's language (310 for 3.1) lacks are left out.
pub fn all(version: Option<u32>) -> Vec<Text> {
    let mut texts = Vec::new();
    let mut known = HashSet::new();
    for name in GENERATIONS {
        let caps = Caps { msl_version: version, ..as_on(&documented(), name) };
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
                    let text = assembled(pass);
                    if known.insert(text.clone()) {
                        let label = format!("{} {}", pass.label, shape.name);
                        let typical = is_typical(&shape);
                        texts.push(Text { label, text, threads: pass.threads, typical });
                    }
                }
            }
        }
    }
    texts
}

fn is_typical(shape: &Shape) -> bool {
    let plain = shape.quantized.is_none() || shape.dtype == DType::F16;
    plain && shape.mnk[2].is_multiple_of(8) && !shape.transposed()[0]
}

/// The recorded caps of an Apple GPU.
fn documented() -> Caps {
    let (_, caps) = tilewise_core::caps::RECORDED
        .iter()
        .find(|(name, _)| *name == "apple-m4-max")
        .expect("it is recorded");
    caps()
}

/// The device's caps under the name of that chip.
pub fn as_on(caps: &Caps, chip: &str) -> Caps {
    Caps { name: chip.to_owned(), ..caps.clone() }
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

/// The start of the attribute that limits the threads of a threadgroup.
const LIMIT: &str = "[[max_total_threads_per_threadgroup(";

/// A text in MSL without its limit of threads.
///
/// # Errors
/// `Unsupported` if the text has no limit: then it is not one that this function was written for.
pub fn without_limit(text: String) -> Result<String> {
    let wrong = |why: &str| {
        Error::Unsupported(format!("a text in MSL {why} {LIMIT}...)]]: mend without_limit"))
    };
    let mut parts = text.split(LIMIT);
    let mut changed = parts.next().unwrap_or_default().to_owned();
    let mut found = false;
    for part in parts {
        let (_, rest) = part.split_once(")]]").ok_or_else(|| wrong("does not end"))?;
        changed.push_str(rest);
        found = true;
    }
    if found { Ok(changed) } else { Err(wrong("has no")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_variant_and_version() {
        let [old, new] = [Some(240), Some(310)].map(all);
        let bf16 = |text: &Text| text.label.contains(":bf16");
        assert!(!old.iter().any(bf16) && new.iter().any(bf16));
        assert!(new.len() > old.len());
        for (kernel, variant) in variants() {
            let name = format!("{}/{}", kernel.name, variant.name);
            for texts in [&old, &new] {
                assert!(texts.iter().any(|text| text.label.starts_with(&name)), "{name}");
            }
        }
        // Each text is there once, and names its limit.
        let distinct: HashSet<&str> = new.iter().map(|text| text.text.as_str()).collect();
        assert_eq!(distinct.len(), new.len());
        let typical = new.iter().filter(|text| text.typical).count();
        eprintln!("{} texts, {} without bf16; {typical} pipelines", new.len(), old.len());
        for text in &new {
            let changed = without_limit(text.text.clone())
                .unwrap_or_else(|why| panic!("{}: {why}", text.label));
            assert!(!changed.contains("max_total_threads"), "{}", text.label);
            assert_eq!(changed.lines().count(), text.text.lines().count());
            assert!(changed.contains("#define LIMIT \n"), "{changed}");
        }
    }

    /// Plans for chips of either generation stage bf16 as f32, and as bf16.
    #[test]
    fn chips_differ_in_how_bf16_is_staged() {
        let problem = Shape::problem(&"64x64x64:bf16".parse().unwrap());
        let forced: Forced = "msl-gemm/64x64x16+k1".parse().unwrap();
        for (chip, staged) in GENERATIONS.into_iter().zip([DType::F32, DType::BF16]) {
            let plan =
                plan(&problem, &as_on(&documented(), chip), &tilewise_msl::LIBRARY, Some(&forced))
                    .unwrap();
            let line = format!("constexpr constant unsigned int STAGED = {};", staged.number());
            assert!(
                assembled(&plan.passes[0]).lines().any(|other| other == line),
                "{chip}: {line}"
            );
        }
    }

    #[test]
    fn a_text_without_the_limit_is_an_error() {
        for text in ["kernel void tilewise_main() {}", "[[max_total_threads_per_threadgroup(64"] {
            let said = without_limit(text.into()).unwrap_err().to_string();
            assert!(said.contains("mend without_limit"), "{said}");
        }
    }
}
