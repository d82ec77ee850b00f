//! `cargo xtask bench --first-hour`: what only a Mac can tell about the kernels in MSL, in one
//! file. Apple's compiler takes or refuses every text, and the products of [`SHAPES`] are timed and
//! checked, in WGSL and in MSL.

#[cfg(target_vendor = "apple")]
mod apple;
mod texts;

use crate::report::Report;
use serde::{Deserialize, Serialize};
use std::process::Command;
use tilewise::Context;

/// Squares of each type, 4-bit weights for few rows and for many, an edge beside whole tiles, and
/// groups of rows.
pub const SHAPES: &[&str] = &[
    "4096x4096x4096",
    "4096x4096x4096:f16",
    "4096x4096x4096:NT:f16",
    "4096x4096x4096:bf16",
    "1x4096x4096:NT:f16:affine-4bit-g64-f16",
    "8x4096x4096:NT:f16:affine-4bit-g64-f16",
    "512x4096x4096:NT:f16:affine-4bit-g64-f16",
    "77x4096x4096:NT:f16",
    "161x2048x2048:f16:e8",
];

/// Versions of Metal's language to compile for, 310 for 3.1.
const VERSIONS: [u32; 3] = [240, 310, 400];

/// Most complaints of each sort to keep in the file.
const TOLD: usize = 20;

/// The file of a first hour.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hour {
    /// A line for readers: what the file is.
    pub file: String,
    /// The operating system; on macOS also the model, its memory, its chip and the GPU's cores.
    pub system: Vec<String>,
    /// Version of Metal's language that wgpu compiles for, 310 for 3.1.
    pub metal_language: Option<u32>,
    /// The compiler's words, for each version of the language.
    pub texts: Vec<Compiled>,
    /// The products; none if the run stopped before.
    pub report: Option<Report>,
}

/// The compiler's words on all texts in a version of the language.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Compiled {
    /// The version, 310 for 3.1.
    pub version: u32,
    /// Why the compiler was not asked; empty if it was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How many texts there are.
    pub texts: usize,
    /// How many texts the compiler was given: fewer if it is slow.
    pub asked: usize,
    /// How many texts it refuses.
    pub refused: usize,
    /// How many texts it takes with a warning.
    pub warned: usize,
    /// The first refusals and the first warnings: the text's label and the compiler's words.
    pub complaints: Vec<String>,
}

impl Hour {
    /// Makes the file with the machine and its compiler's answers, before products are timed.
    pub fn compiled(context: &Context) -> Self {
        Hour {
            file: "tilewise: the first hour on a Mac; please send it back as CONTRIBUTING.md says"
                .into(),
            system: system(),
            metal_language: context.caps().msl_version,
            texts: VERSIONS.map(|version| Compiled::of(context, version)).into(),
            report: None,
        }
    }
}

impl Compiled {
    fn of(context: &Context, version: u32) -> Self {
        let all = texts::all(version);
        let texts: Vec<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
        let verdicts = match verdicts(context, version, &texts) {
            Ok(verdicts) => verdicts,
            Err(reason) => return Compiled { version, reason, ..Compiled::default() },
        };
        let asked = verdicts.len();
        let (mut errors, mut warnings) = (Vec::new(), Vec::new());
        for ((label, _), verdict) in all.iter().zip(verdicts) {
            match verdict {
                Ok(None) => {}
                Ok(Some(words)) => warnings.push(format!("warning: {label}: {words}")),
                Err(words) => errors.push(format!("refused: {label}: {words}")),
            }
        }
        let (refused, warned) = (errors.len(), warnings.len());
        let told = errors.into_iter().take(TOLD).chain(warnings.into_iter().take(TOLD));
        let complaints = told.collect();
        Compiled {
            version,
            texts: all.len(),
            asked,
            refused,
            warned,
            complaints,
            ..Self::default()
        }
    }
}

/// The compiler's words on a text: warnings if it compiles, else the error.
type Verdict = Result<Option<String>, String>;

/// The compiler's words on each text in this version of the language.
///
/// # Errors
/// Why the compiler cannot be asked.
fn verdicts(context: &Context, version: u32, texts: &[&str]) -> Result<Vec<Verdict>, String> {
    #[cfg(target_vendor = "apple")]
    return apple::verdicts(context, version, texts);
    #[cfg(not(target_vendor = "apple"))]
    {
        let _ = (context, version, texts);
        Err("needs Apple's compiler, which is part of macOS and iOS alone".into())
    }
}

/// The system; on macOS also lines about the machine.
fn system() -> Vec<String> {
    const WANTED: [&str; 7] = [
        "Product",
        "Build",
        "hw.",
        "machdep.",
        "Chipset Model:",
        "Total Number of Cores:",
        "Metal",
    ];
    let mut told = vec![std::env::consts::OS.to_owned()];
    for (program, args) in [
        ("sw_vers", &[][..]),
        ("sysctl", &["hw.model", "hw.memsize", "machdep.cpu.brand_string"]),
        ("system_profiler", &["SPDisplaysDataType"]),
    ] {
        let Ok(output) = Command::new(program).args(args).output() else { continue };
        let text = String::from_utf8_lossy(&output.stdout);
        let lines = text.lines().map(str::trim);
        let wanted = lines.filter(|line| WANTED.iter().any(|word| line.starts_with(word)));
        told.extend(wanted.map(str::to_owned));
    }
    told
}
