//! Kernels that are named instead of chosen.

use super::Plan;
use crate::error::{Error, Result};
use crate::kernel::{KernelDef, Library, Variant};
use crate::quant::nearest;

/// A kernel by name: `simt`, `simt/64x64x16`, `simt/64x64x16+k4`, `coop/64x64x32+pad16` or
/// `coop/64x64x32+pad16+k4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forced {
    /// The mainloop's name.
    pub kernel: String,
    /// The variant's name; all variants when absent.
    pub variant: Option<String>,
    /// Elements between the lines of a slice in workgroup memory; the variant's own when absent.
    pub pad: Option<u32>,
    /// Splits of K, at most: K is split at whole steps of the variant. The planner chooses when
    /// absent.
    pub splits: Option<u64>,
}

impl Forced {
    /// Fails with `Misuse` unless `library` has such a kernel.
    pub fn known(&self, library: &Library) -> Result<()> {
        let named = |kernel: &&KernelDef| kernel.name == self.kernel;
        let has = |kernel: &KernelDef| match self.variant.as_deref() {
            Some(name) => kernel.variants.iter().any(|variant| variant.name == name),
            None => true,
        };
        if library.kernels.iter().find(named).is_some_and(has) {
            Ok(())
        } else {
            Err(unknown(self, library))
        }
    }

    /// Fails with `Misuse` if K has fewer splits in the plan of this kernel than are named
    /// here.
    pub fn met_by(&self, plan: &Plan) -> Result<()> {
        match (self.splits, &plan.choice) {
            (Some(asked), Some(choice)) if choice.splits != asked => {
                let (k, made) = (plan.problem.k, choice.splits);
                Err(Error::Misuse(format!(
                    "{self}: splits of K: {asked} asked, {made} made of K = {k} in whole steps of \
                     {}/{}; name +k{made}",
                    choice.kernel, choice.variant
                )))
            }
            _ => Ok(()),
        }
    }
}

impl std::fmt::Display for Forced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.kernel)?;
        if let Some(variant) = &self.variant {
            write!(f, "/{variant}")?;
        }
        if let Some(pad) = self.pad {
            write!(f, "+pad{pad}")?;
        }
        self.splits.map_or(Ok(()), |splits| write!(f, "+k{splits}"))
    }
}

impl std::str::FromStr for Forced {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut suffixes = text.trim().split('+');
        let name = suffixes.next().unwrap_or_default();
        let (mut pad, mut splits) = (None, None);
        for suffix in suffixes {
            let number = |prefix: &str, least: u64, most: u64, taken: bool| {
                let number = suffix.strip_prefix(prefix)?.parse().ok();
                Some(number.filter(|number| (least..=most).contains(number) && !taken).ok_or_else(
                    || {
                        Error::Misuse(format!(
                            "{text:?}: +{prefix} wants a number from {least} to {most}, once"
                        ))
                    },
                ))
            };
            if let Some(number) = number("pad", 0, 1024, pad.is_some()) {
                pad = Some(number? as u32);
            } else if let Some(number) = number("k", 1, 4096, splits.is_some()) {
                splits = Some(number?);
            } else {
                return Err(Error::Misuse(format!(
                    "{text:?}: +{suffix} is neither +k nor +pad and a number"
                )));
            }
        }
        let (kernel, variant) = match name.split_once('/') {
            Some((kernel, variant)) => (kernel, Some(variant.to_owned())),
            None => (name, None),
        };
        Ok(Forced { kernel: kernel.to_owned(), variant, pad, splits })
    }
}

fn unknown(forced: &Forced, library: &Library) -> Error {
    let kernels = || library.kernels.iter();
    let of = |kernel: &'static KernelDef| {
        kernel.variants.iter().map(move |variant| format!("{}/{}", kernel.name, variant.name))
    };
    let (name, names): (_, Vec<String>) = match &forced.variant {
        None => (forced.kernel.clone(), kernels().map(|kernel| kernel.name.to_owned()).collect()),
        // The variants of the kernel that is named, or of all if there is none.
        Some(variant) => {
            let named = kernels().find(|kernel| kernel.name == forced.kernel);
            let names =
                named.map_or_else(|| kernels().flat_map(of).collect(), |own| of(own).collect());
            (format!("{}/{variant}", forced.kernel), names)
        }
    };
    let nearest = nearest(&name, names.iter().map(String::as_str)).join(", ");
    Error::Misuse(format!(
        "no kernel is named {name:?}; the nearest of {} are {nearest}",
        names.len()
    ))
}

/// Every kernel and variant, or only the forced ones.
pub(super) fn variants(
    library: &Library,
    forced: Option<&Forced>,
) -> impl Iterator<Item = (&'static KernelDef, &'static Variant)> {
    let all = library
        .kernels
        .iter()
        .flat_map(|kernel| kernel.variants.iter().map(move |variant| (kernel, variant)));
    all.filter(move |(kernel, variant)| {
        forced.is_none_or(|f| {
            f.kernel == kernel.name && f.variant.as_deref().is_none_or(|name| name == variant.name)
        })
    })
}
