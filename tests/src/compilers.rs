//! The compilers of platforms, and what they say of the library's texts. `cargo xtask compilers`
//! installs them and runs this.

mod report;
mod run;

pub use report::report;
pub use run::{Met, Outcome};

use crate::texts::Text;
use crate::translated::Read;
use clap::ValueEnum;
use naga::back::hlsl::ShaderModel;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compiler {
    /// Chrome's compiler, which reads WGSL.
    Tint,
    /// Microsoft's present compiler, which reads HLSL of shader model 6.
    Dxc,
    /// Microsoft's earlier compiler, which every Windows has, for shader model 5.1.
    Fxc,
    /// The validator of SPIR-V. Drivers of Vulkan trust that it was run.
    SpirvVal,
}

/// The places of the compilers.
pub struct Tools {
    /// Wine, for Microsoft's compilers.
    pub wine: PathBuf,
    /// `hlsl.exe` and the libraries beside it; npm's packages.
    pub folder: PathBuf,
    /// Seconds of CPU time that Microsoft's compilers have for each text.
    pub seconds: f64,
}

/// A barrier that some invocations meet more often than others.
const DIVIDED: &str = include_str!("compilers/divided.wgsl");

/// A type with two names: naga's HLSL then has a helper twice.
const TWO_NAMES: &str = include_str!("compilers/two_names.wgsl");

/// Seconds that one process may last, for two dozen texts on a busy machine.
const MOST_OF_A_PROCESS: &str = "300";

/// A program around the validator, with answers like those of the other programs.
const SPIRV_VAL: &str = "while read -r path; do
    if spirv-val --target-env vulkan1.3 \"$path\" 2>&1; then echo \"@ taken 0 $path\"
    else echo \"@ refused 0 $path\"; fi
done";

impl Compiler {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Compiler::Tint => "Tint",
            Compiler::Dxc => "DXC",
            Compiler::Fxc => "FXC",
            Compiler::SpirvVal => "spirv-val",
        }
    }

    /// The number of parts of the texts: each commit takes the next part. Every part has at least
    /// one text of every kernel and operation.
    pub fn turns(self) -> usize {
        match self {
            Compiler::Tint => 4,
            Compiler::Dxc | Compiler::Fxc => 60,
            Compiler::SpirvVal => 8,
        }
    }

    /// A text that the compiler must refuse, and a part of its words.
    fn bad(self) -> (&'static str, &'static str) {
        match self {
            Compiler::Tint => (DIVIDED, "uniform control flow"),
            Compiler::Dxc => (TWO_NAMES, "redefinition"),
            Compiler::Fxc => (DIVIDED, "varying flow control"),
            // naga writes no wrong SPIR-V, so the last word is cut off.
            Compiler::SpirvVal => (TWO_NAMES, "error"),
        }
    }

    /// Whether the compiler's platform offers what the text needs.
    pub fn takes(self, text: &Text) -> bool {
        match self {
            // Debian's version of spirv-val is older than matrix units in SPIR-V.
            Compiler::Tint | Compiler::Dxc | Compiler::SpirvVal => !text.coop,
            Compiler::Fxc => text.fxc,
        }
    }

    /// Writes the file that the compiler reads, and returns the line that tells its program of it.
    fn write(self, text: &Text, stem: &Path) -> Result<(PathBuf, String), String> {
        let hlsl = |model: ShaderModel| {
            let (hlsl, entry) = Read::new(&text.wgsl, text.checks)?.hlsl(model)?;
            let profile = if model == ShaderModel::V5_1 { "cs_5_1" } else { "cs_6_6" };
            Ok::<_, String>((hlsl.into_bytes(), "hlsl", format!("{profile} {entry} ")))
        };
        let (bytes, extension, before) = match self {
            Compiler::Tint => {
                let enable = if text.wgsl.contains("subgroup") { "enable subgroups;" } else { "" };
                ([enable, &text.wgsl].concat().into_bytes(), "wgsl", String::new())
            }
            Compiler::Dxc => hlsl(ShaderModel::V6_6)?,
            Compiler::Fxc => hlsl(ShaderModel::V5_1)?,
            Compiler::SpirvVal => {
                let words = Read::new(&text.wgsl, text.checks)?.spirv()?;
                (bytemuck::cast_slice(&words).to_vec(), "spv", String::new())
            }
        };
        let path = stem.with_extension(extension);
        std::fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        let line = format!("{before}{}", path.display());
        Ok((path, line))
    }

    /// The program that reads a list of such lines, and answers each with `@ OUTCOME SECONDS PATH`.
    fn command(self, tools: &Tools) -> Command {
        match self {
            Compiler::Tint => {
                let mut command = limited("node".as_ref());
                command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/compilers/tint.mjs"));
                command.arg(tools.folder.join("node_modules/webgpu"));
                command
            }
            Compiler::Dxc | Compiler::Fxc => {
                let mut command = limited(&tools.wine);
                command.current_dir(&tools.folder).args(["hlsl.exe", &self.name().to_lowercase()]);
                command.arg(tools.seconds.to_string());
                // Wine has a d3dcompiler of its own; this takes Microsoft's.
                command.env("WINEDLLOVERRIDES", "mscoree,mshtml=;d3dcompiler_47=n");
                command.env("WINEPREFIX", tools.folder.join("wine")).env("WINEDEBUG", "-all");
                command
            }
            Compiler::SpirvVal => {
                let mut command = limited("sh".as_ref());
                command.args(["-c", SPIRV_VAL]);
                command
            }
        }
    }
}

/// A program that is ended if it hangs.
fn limited(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.arg(MOST_OF_A_PROCESS).arg(program);
    command
}
