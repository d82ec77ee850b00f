//! Every text of the library that devices get: products, conversions, operations, and the modules
//! around custom kernels.

mod custom;
mod lint;
mod passes;
mod place;

pub use lint::lint;
pub use passes::{devices, passes};

use crate::translated::Checks;

use crate::ops;
use rayon::prelude::*;
use std::collections::HashMap;
use tilewise::{Call, Context, Error, Kernel};
use tilewise_core::Caps;
use tilewise_core::kernel::Language;
use tilewise_core::plan::{Part, Pass};
use tilewise_shaders::{FILES, assemble, without_aliases};

/// All files of a pass's text: the planner's choice, and the files that the choice needs.
pub fn parts(pass: &Pass) -> Vec<Part> {
    let sources = match pass.language {
        Language::Wgsl => tilewise_shaders::SOURCES,
        Language::Msl => tilewise_msl::SOURCES,
    };
    sources.link(&pass.parts).unwrap_or_else(|error| panic!("{}: {error}", pass.label))
}

/// A text in WGSL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Text {
    /// The pass, or the operation and the number of its step.
    pub name: String,
    /// The text itself.
    pub wgsl: String,
    /// The checks that devices make while they run it.
    pub checks: Checks,
    /// Whether a device of DX12 without DXC gets the text.
    pub fxc: bool,
    /// Whether the text has matrix units, which only Vulkan offers.
    pub coop: bool,
    /// The files of a pass.
    parts: Vec<Part>,
}

impl Text {
    /// The kernel with its variant, the operation with its step, or the kind of conversion.
    pub fn kernel(&self) -> &str {
        self.name.split(' ').next().unwrap_or_default()
    }

    /// The text of a pass.
    pub fn of_pass(pass: &Pass) -> Self {
        let (name, parts) = (pass.label.clone(), parts(pass));
        Text {
            name,
            wgsl: assemble(pass),
            checks: Checks::None,
            fxc: false,
            coop: pass.coop,
            parts,
        }
    }

    /// A text with a mistake that a compiler must see.
    pub fn planted(wgsl: &str) -> Self {
        let (name, wgsl) = ("planted".to_owned(), wgsl.to_owned());
        Text { name, wgsl, checks: Checks::None, fxc: false, coop: false, parts: Vec::new() }
    }

    fn of_kernel(name: String, checks: Checks, kernel: &Kernel, call: &Call) -> Self {
        let module = kernel.wgsl(call).unwrap_or_else(|error| panic!("{name}: {error}"));
        let wgsl = without_aliases(&module);
        let coop = wgsl.contains("enable wgpu_cooperative_matrix;");
        let checks = if coop { Checks::None } else { checks };
        Text { name, wgsl, checks, fxc: false, coop, parts: Vec::new() }
    }

    /// The file and line that line `number` of the text comes from.
    pub fn place(&self, number: usize) -> Option<String> {
        let of_part = |part: &Part| {
            let (path, text) = FILES.iter().find(|(path, _)| *path == part.file)?;
            Some((format!("shaders/{path}"), part.instantiate(text)))
        };
        let of_op = |(path, text)| (format!("crates/tilewise/src/{path}"), String::from(text));
        let files: Vec<_> = match self.parts.is_empty() {
            true => tilewise::ops::texts().map(of_op).collect(),
            false => self.parts.iter().filter_map(of_part).collect(),
        };
        place::of_line(&files, &self.wgsl, number)
    }
}

/// All texts, each once, sorted by their names.
pub fn all() -> Vec<Text> {
    let mut texts = on(&devices(), false);
    texts.extend(on(&[passes::with_fxc()], true));
    texts.sort_by_cached_key(|text| (text.name.clone(), text.wgsl.clone(), !text.fxc));
    let mut met = HashMap::<_, bool>::new();
    for text in &texts {
        *met.entry((text.wgsl.clone(), text.checks)).or_default() |= text.fxc;
    }
    let once = |mut text: Text| {
        text.fxc = met.remove(&(text.wgsl.clone(), text.checks))?;
        Some(text)
    };
    texts.into_iter().filter_map(once).collect()
}

/// The texts of some devices.
fn on(devices: &[Caps], fxc: bool) -> Vec<Text> {
    let passes: Vec<_> = passes::passes_on(devices).collect();
    let mut texts: Vec<_> = passes.par_iter().map(|(pass, _)| Text::of_pass(pass)).collect();
    texts.par_extend(devices.par_iter().flat_map(|caps| {
        let context = Context::cpu_as(caps.clone());
        let families = ops::FAMILIES.par_iter().chain(&[("in_parts", ops::in_parts as _)]);
        let of_ops = families.flat_map_iter(|(family, cases)| {
            let context = &context;
            cases().into_iter().flat_map(move |case| {
                let calls = match case.calls(context) {
                    // Operations that FXC does not compile are not offered with it.
                    Err(Error::DeviceLimit(_)) if fxc => Vec::new(),
                    calls => calls.unwrap_or_else(|error| panic!("{}: {error}", case.name)),
                };
                let text = |(step, (kernel, call)): (usize, (Kernel, Call))| {
                    let name = format!("ops/{family}.{step}");
                    Text::of_kernel(name, Checks::Operation, &kernel, &call)
                };
                calls.into_iter().enumerate().map(text).collect::<Vec<_>>()
            })
        });
        let of_customs = custom::calls(&context)
            .into_iter()
            .map(|(name, kernel, call)| Text::of_kernel(name, Checks::All, &kernel, &call));
        of_ops.collect::<Vec<_>>().into_par_iter().chain(of_customs.collect::<Vec<_>>())
    }));
    texts.iter_mut().for_each(|text| text.fxc = fxc);
    texts
}
