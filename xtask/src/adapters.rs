//! `cargo xtask adapters`: finds the Vulkan drivers to test with, and installs the software ones if
//! it may.
//!
//! There are two software drivers, because each finds what the other forgives. lavapipe (Mesa) is
//! the one that Linux distributions ship: it has shader-f16, and subgroups of 8, here of 2.
//! SwiftShader is the one that Chromium ships: it has no f16, and subgroups of 4. With it, the
//! kernels that pack 16-bit types into words run somewhere.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::clang;
use crate::debian::{self, Apt};
use crate::process::Result;

/// lavapipe of Mesa 25.0 offers shader-f16; lavapipe of 22.3 (Debian bookworm) does not.
pub(crate) const MESA_WITH_F16: &str = "25";

/// Settings of Mesa's software drivers. Vectors are as narrow as possible, two invocations each:
/// the suite mostly compiles, and a kernel then compiles in little more than half the time that it
/// takes with four. Leaving out optimisation saves another eighth.
pub(crate) const LLVMPIPE: [(&str, &str); 2] =
    [("LP_NATIVE_VECTOR_WIDTH", "64"), ("GALLIVM_PERF", "nopt")];

/// Folders in which the Vulkan loader itself looks for drivers.
const MANIFEST_FOLDERS: [&str; 3] =
    ["/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d"];

/// Paths by which a Linux kernel shows a real GPU: the common interface, NVIDIA's own, and the one
/// of Windows' Linux subsystem.
const GPU_DEVICES: [&str; 3] = ["/dev/dri", "/dev/nvidia0", "/dev/dxg"];

/// Browsers keep their SwiftShader beside their program, where the loader does not look. The
/// library's path in the manifest is relative to the manifest, so it works from there.
const SWIFTSHADER_MANIFESTS: [&str; 3] = [
    "/usr/lib/chromium/vk_swiftshader_icd.json",
    "/opt/google/chrome/vk_swiftshader_icd.json",
    "/usr/share/vulkan/icd.d/vk_swiftshader_icd.json",
];

/// The drivers to show to the tests, and what the tests must then find.
#[derive(Debug, Default)]
pub(crate) struct Adapters {
    /// Manifests of Vulkan drivers, software first; empty if the platform's own API is used.
    pub(crate) drivers: Vec<PathBuf>,
    /// Words of `TILEWISE_REQUIRE`: a required adapter that is missing is a failure and not a skip.
    pub(crate) require: Vec<String>,
}

impl Adapters {
    /// Shows these drivers and requirements to `command`.
    pub(crate) fn apply(&self, command: &mut Command) {
        command.envs(self.environment());
    }

    /// The drivers and requirements, as pairs of name and value.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![("TILEWISE_REQUIRE", self.require.join(","))];
        if !self.drivers.is_empty() {
            let list = self
                .drivers
                .iter()
                .map(|path| path.to_string_lossy())
                .collect::<Vec<_>>()
                .join(":");
            // Loaders before 1.3.207 (Ubuntu 22.04) know the second name only.
            pairs.push(("VK_DRIVER_FILES", list.clone()));
            pairs.push(("VK_ICD_FILENAMES", list));
            pairs.extend(LLVMPIPE.map(|(name, value)| (name, value.to_owned())));
        }
        pairs
    }

    fn require(&mut self, word: &str) {
        if !self.require.iter().any(|required| required == word) {
            self.require.push(word.to_owned());
        }
    }

    /// Whether lavapipe is among the drivers.
    pub(crate) fn has_lavapipe(&self) -> bool {
        self.require.iter().any(|word| word == "lavapipe")
    }
}

/// The command: prints the environment under which `cargo test` sees the same adapters.
pub(crate) fn main() -> Result {
    for (name, value) in prepare()?.environment() {
        println!("export {name}={value}");
    }
    Ok(())
}

/// Finds the adapters of this machine; on Linux, missing software ones are installed. The words of
/// the user's own `TILEWISE_REQUIRE` are required as well.
pub(crate) fn prepare() -> Result<Adapters> {
    let mut adapters = of_this_system()?;
    if clang::prepare() {
        adapters.require("msl");
    }
    for word in env::var("TILEWISE_REQUIRE").unwrap_or_default().split(',').map(str::trim) {
        // These words are for other steps: no adapter bears such a name.
        if !matches!(word, "" | "targets" | "gl" | "mpi" | "browser" | "compilers") {
            adapters.require(word);
        }
    }
    Ok(adapters)
}

fn of_this_system() -> Result<Adapters> {
    let mut adapters = Adapters::default();
    match env::consts::OS {
        "linux" => return prepare_linux(),
        "macos" => adapters.require("metal"),
        // WARP, the software adapter of DX12, is a part of Windows 10 and later.
        "windows" if Path::new(r"C:\Windows\System32\d3d10warp.dll").exists() => {
            adapters.require("dx12");
        }
        system => {
            eprintln!(
                "no software adapter is known for {system}: tests run on the adapters that there \
                 are"
            );
        }
    }
    Ok(adapters)
}

fn prepare_linux() -> Result<Adapters> {
    let old = debian::installed_version("mesa-vulkan-drivers")
        .is_some_and(|version| !debian::is_at_least(&version, MESA_WITH_F16));
    if old || lavapipe().is_none() || swiftshader().is_none() {
        match Apt::open() {
            Ok(apt) => install(&apt, old)?,
            Err(why) => eprintln!("missing software adapters are not installed: {why}"),
        }
    }

    let lavapipe = lavapipe().ok_or(
        "no lavapipe, the software Vulkan driver that the tests need: install Mesa's Vulkan \
         drivers (mesa-vulkan-drivers on Debian, Ubuntu and Fedora, vulkan-swrast on Arch) and the \
         Vulkan loader",
    )?;
    eprintln!("lavapipe: {}", lavapipe.display());
    let mut found = Adapters { drivers: vec![lavapipe], ..Adapters::default() };
    ["vulkan", "f16", "lavapipe"].iter().for_each(|word| found.require(word));
    match swiftshader() {
        Some(manifest) => {
            eprintln!("SwiftShader: {}", manifest.display());
            found.drivers.push(manifest);
            found.require("swiftshader");
        }
        None => eprintln!(
            "no SwiftShader (Debian has it in chromium-common, and Chrome brings it): not required"
        ),
    }
    // The loader hides all drivers that are not named. A real GPU is worth testing, so if there is
    // one, every driver is named.
    if GPU_DEVICES.iter().any(|device| Path::new(device).exists()) {
        let named = env::var_os("VK_DRIVER_FILES").unwrap_or_default();
        for manifest in env::split_paths(&named).chain(system_manifests()) {
            if manifest.is_file() && !found.drivers.contains(&manifest) {
                found.drivers.push(manifest);
            }
        }
    }
    Ok(found)
}

/// Installs what is missing; `old` says that lavapipe is there, but without shader-f16.
fn install(apt: &Apt, old: bool) -> Result {
    if old || lavapipe().is_none() {
        eprintln!(
            "lavapipe (software Vulkan with shader-f16: Mesa {MESA_WITH_F16} or later) is missing"
        );
        match apt.suite_with("mesa-vulkan-drivers", MESA_WITH_F16) {
            Ok(suite) => apt.install(&["mesa-vulkan-drivers", "libvulkan1"], suite.as_deref())?,
            Err(why) => {
                eprintln!("{why}: taking the release's own, whose lavapipe may lack shader-f16");
                apt.install(&["mesa-vulkan-drivers", "libvulkan1"], None)?;
            }
        }
    }
    if swiftshader().is_none() && apt.is_debian {
        eprintln!(
            "SwiftShader (software Vulkan without shader-f16) is missing; chromium-common contains \
             it"
        );
        apt.install(&["chromium-common"], None)?;
    }
    Ok(())
}

pub(crate) fn lavapipe() -> Option<PathBuf> {
    system_manifests().into_iter().find(|path| file_name(path).starts_with("lvp_icd"))
}

fn swiftshader() -> Option<PathBuf> {
    SWIFTSHADER_MANIFESTS.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// The manifests that the loader would find by itself, in a stable order. Those of foreign
/// architectures are left out: `lvp_icd.i686.json` may lie beside `lvp_icd.x86_64.json`. Newer
/// packages do not name the architecture.
fn system_manifests() -> Vec<PathBuf> {
    let entries =
        MANIFEST_FOLDERS.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut manifests: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| is_ours(file_name(path))).collect();
    manifests.sort();
    manifests
}

fn is_ours(manifest: &str) -> bool {
    let Some(stem) = manifest.strip_suffix(".json") else { return false };
    stem.rsplit_once('.').is_none_or(|(_, architecture)| architecture == env::consts::ARCH)
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_of_other_architectures_are_left_out() {
        assert!(is_ours(&format!("lvp_icd.{}.json", env::consts::ARCH)));
        assert!(is_ours("lvp_icd.json"));
        assert!(!is_ours("lvp_icd.i686.json"));
        assert!(!is_ours("lvp_icd.json.bak"));
    }

    #[test]
    fn drivers_are_shown_under_both_names() {
        let mut adapters =
            Adapters { drivers: vec!["/a.json".into(), "/b.json".into()], ..Adapters::default() };
        ["vulkan", "f16", "vulkan"].iter().for_each(|word| adapters.require(word));
        let expected = [
            ("TILEWISE_REQUIRE", "vulkan,f16"),
            ("VK_DRIVER_FILES", "/a.json:/b.json"),
            ("VK_ICD_FILENAMES", "/a.json:/b.json"),
            ("LP_NATIVE_VECTOR_WIDTH", "64"),
            ("GALLIVM_PERF", "nopt"),
        ];
        assert_eq!(adapters.environment(), expected.map(|(name, value)| (name, value.to_owned())));
    }
}
