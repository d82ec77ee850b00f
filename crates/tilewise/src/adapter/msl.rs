//! Which languages a context plans with: WGSL everywhere, and MSL too on GPUs that it is for.
//!
//! MSL goes into the same device and encoder, as text that the driver compiles. Only compiling
//! shows whether an Apple GPU's driver takes a kernel. Refused kernels are remembered
//! (`gpu/pipeline.rs`), and their products are planned again with WGSL kernels alone
//! (`Context::planned`).

use crate::adapter::options::Switch;
use tilewise_core::kernel::{Language, Library};
use tilewise_core::plan::Forced;
use tilewise_core::{CoopMatrix, DType, Error, Result};

#[cfg(all(feature = "msl", not(target_family = "wasm")))]
pub(crate) use tilewise_msl::{ENTRY, FILES, LIBRARY as BOTH, assemble};

#[cfg(not(all(feature = "msl", not(target_family = "wasm"))))]
pub(crate) use without::{ENTRY, FILES, LIBRARY as BOTH, assemble};

/// Stand-ins without the feature: there is no kernel in MSL, so no pass is in MSL.
#[cfg(not(all(feature = "msl", not(target_family = "wasm"))))]
mod without {
    use tilewise_core::plan::Pass;
    pub(crate) use tilewise_shaders::LIBRARY;

    pub(crate) const ENTRY: &str = "";
    pub(crate) const FILES: &[(&str, &str)] = &[];

    pub(crate) fn assemble(_: &Pass) -> String {
        String::new()
    }
}

/// Kernels in WGSL alone.
pub(crate) const WGSL: &Library = &tilewise_shaders::LIBRARY;

/// Kernels in both languages, with the feature `msl`.
pub(crate) const ALL: &Library = &BOTH;

/// The kernels for a device: `wanted` is [`ContextOptions::msl`](crate::ContextOptions::msl),
/// `suits` what [`suits`] says of it.
pub(crate) fn library(wanted: Switch, suits: bool) -> &'static Library {
    if wanted.or(suits) { ALL } else { WGSL }
}

/// Whether MSL kernels are for this device: it is used through Metal, wgpu may pass MSL on, and it
/// has simdgroup matrices, which AMD's and Intel's GPUs in Macs lack.
pub(crate) fn suits(backend: wgpu::Backend, features: wgpu::Features, coop: &[CoopMatrix]) -> bool {
    let matrix = CoopMatrix { size: 8, operands: DType::F32, sums: DType::F32 };
    has_msl(ALL)
        && backend == wgpu::Backend::Metal
        && features.contains(wgpu::Features::PASSTHROUGH_SHADERS)
        && coop.contains(&matrix)
}

/// Whether a library has kernels in MSL.
pub(crate) fn has_msl(library: &Library) -> bool {
    library.kernels.iter().any(|kernel| kernel.kit.language == Language::Msl)
}

/// `DeviceLimit` for a kernel in MSL that exists but is off here. A name that does not exist is
/// another error, found elsewhere.
pub(crate) fn on(forced: &Forced, library: &Library) -> Result<()> {
    if forced.known(library).is_err() && forced.known(ALL).is_ok() {
        let how = "they are for Metal, on GPUs with simdgroup matrices; ContextOptions::msl, \
                   TILEWISE_MSL=on: anywhere";
        return Err(Error::DeviceLimit(format!(
            "{forced} is in MSL, and kernels in MSL are off here ({how})"
        )));
    }
    Ok(())
}

/// The words of the driver's compiler for a text that it refuses; wgpu only logs them. `None` if
/// the compiler cannot be asked, or takes the text.
pub(crate) fn words(device: &wgpu::Device, text: &str) -> Option<String> {
    #[cfg(all(target_vendor = "apple", feature = "metal"))]
    return crate::adapter::apple::compile(device, text).err();
    #[cfg(not(all(target_vendor = "apple", feature = "metal")))]
    {
        let _ = (device, text);
        None
    }
}

/// The version of Metal's language on a device, 310 for 3.1; none elsewhere. wgpu leaves the choice
/// to Metal, which goes by the SDK that the program is linked against.
pub(crate) fn version(device: &wgpu::Device) -> Option<u32> {
    #[cfg(all(target_vendor = "apple", feature = "metal"))]
    {
        let version = crate::adapter::apple::language_version(device)?;
        log::info!("Metal's language is {}.{}", version / 100, version / 10 % 10);
        if version < 310 {
            log::info!(
                "kernels in MSL do without bf16, which needs 3.1: link the program against a \
                 newer SDK"
            );
        }
        Some(version)
    }
    #[cfg(not(all(target_vendor = "apple", feature = "metal")))]
    {
        let _ = device;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wgpu::{Backend, Features};

    const FLOATS: CoopMatrix = CoopMatrix { size: 8, operands: DType::F32, sums: DType::F32 };
    const HALVES: CoopMatrix = CoopMatrix { operands: DType::F16, ..FLOATS };

    #[test]
    fn msl_is_for_metal_with_simdgroup_matrices() {
        let all = Features::all();
        let with_msl = |wanted, backend, features, coop: &[CoopMatrix]| {
            has_msl(library(wanted, suits(backend, features, coop)))
        };
        let there = has_msl(ALL);
        assert_eq!(with_msl(Switch::Auto, Backend::Metal, all, &[HALVES, FLOATS]), there);
        for (backend, features, coop) in [
            (Backend::Vulkan, all, [FLOATS].as_slice()),
            (Backend::Dx12, all, &[FLOATS]),
            (Backend::Metal, all, &[]),
            (Backend::Metal, all, &[HALVES]),
            (Backend::Metal, all - Features::PASSTHROUGH_SHADERS, &[FLOATS]),
        ] {
            assert!(!with_msl(Switch::Auto, backend, features, coop), "{backend:?} {coop:?}");
            assert!(!with_msl(Switch::Off, backend, features, coop));
            assert_eq!(with_msl(Switch::On, backend, features, coop), there);
        }
        assert!(!with_msl(Switch::Off, Backend::Metal, all, &[FLOATS]));
        assert!(!has_msl(WGSL));
    }
}
