//! Assembles the part files of a pass to the text of one MSL library. Two rules are the same as for
//! WGSL, and C++ does the rest:
//!
//! 1. Whole files are concatenated: the files of the pass, and the files that these need. A file
//!    stands behind the files that it needs ([`Sources::link`](tilewise_shaders::Sources::link)).
//! 2. A file instantiated for an operand has the prefix `x_` (`X_`) of its identifiers replaced by
//!    the operand's name.
//!
//! Before them stand the constants of all part files, the number of threads that are launched, the
//! slot of every buffer as `NAME_SLOT`, and the struct [`Params`].

use crate::tables::SOURCES;
use std::fmt::Write;
use tilewise_core::Params;
use tilewise_core::kernel::{Language, Role};
use tilewise_core::plan::{Part, Pass};

/// The entry point of every text.
pub const ENTRY: &str = "tilewise_main";

/// The MSL of a pass. Every file named by the tables exists: a test assembles them all.
///
/// # Panics
/// When a part names a file that does not exist, files do not link, or two parts give a constant
/// two values, which only a mistake in the tables or the files can cause.
pub fn assemble(pass: &Pass) -> String {
    assemble_with(pass, |_| None).unwrap_or_else(|why| panic!("{why}"))
}

/// Like [`assemble`], with another text for each file that `replaced` knows by its path: for tests
/// of what a change does.
///
/// # Errors
/// The errors of [`assemble`] panics, in words.
pub fn assemble_with<'a>(
    pass: &Pass,
    replaced: impl Fn(&str) -> Option<&'a str>,
) -> Result<String, String> {
    let parts = SOURCES.link(&pass.parts)?;
    let mut text = constants(&parts)?;
    let _ = writeln!(text, "#define THREADS_LAUNCHED {}", pass.threads);
    let roles = pass.bindings.iter().map(|binding| binding.role);
    for (role, slot) in std::iter::once(Role::Params).chain(roles).zip(0..) {
        let _ =
            writeln!(text, "#define {}_SLOT {slot}", role.name().to_uppercase().replace(' ', "_"));
    }
    text += &Params::declaration(Language::Msl);
    for part in &parts {
        let file = replaced(part.file).map_or_else(|| SOURCES.text(part.file), Ok)?;
        let _ = write!(text, "\n{}", part.instantiate(file));
    }
    Ok(text)
}

/// The constants of all part files, each once. No header has been included yet, so that some
/// systems do not know `uint`.
fn constants(parts: &[Part]) -> Result<String, String> {
    let mut known: Vec<(String, u32)> = Vec::new();
    for part in parts {
        for (name, value) in &part.constants {
            let name = part.instantiate(name);
            match known.iter().find(|(other, _)| *other == name) {
                None => known.push((name, *value)),
                Some((_, other)) if other == value => {}
                Some((_, other)) => return Err(format!("{name} is to be {other} and {value}")),
            }
        }
    }
    Ok(known
        .iter()
        .map(|(name, value)| format!("constexpr constant unsigned int {name} = {value};\n"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FILES, LIBRARY};
    use tilewise_core::plan::Forced;
    use tilewise_core::{Caps, DType, Problem, plan};

    fn text() -> String {
        let forced: Forced = "msl-gemm/32x32x16".parse().unwrap();
        let caps = Caps { max_storage_buffers: 31, ..Caps::webgpu_default() };
        let plan =
            plan(&Problem::dense(DType::F16, 40, 40, 40), &caps, &LIBRARY, Some(&forced)).unwrap();
        assemble(&plan.passes[0])
    }

    #[test]
    fn constants_and_slots_stand_first() {
        let text = text();
        for line in [
            "constexpr constant unsigned int BM = 32;",
            "constexpr constant unsigned int B_WIDTH = 8;",
            "#define PARAMS_SLOT 0",
            "#define C_SLOT 3",
        ] {
            assert_eq!(text.lines().filter(|other| *other == line).count(), 1, "{line}");
        }
        assert!(text.find("C_SLOT 3").unwrap() < text.find("#include").unwrap());
    }

    #[test]
    fn operands_have_their_names() {
        let text = text();
        for name in ["A_Format", "B_Format", "A_Operand", "BIAS_Format"] {
            assert!(text.contains(name), "{name}");
        }
        assert!(!text.contains("X_Format"));
    }

    #[test]
    fn every_file_is_listed() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
        let mut found = 0;
        for folder in [".", "schedule", "operand", "mainloop", "epilogue"] {
            for entry in std::fs::read_dir(root.join(folder)).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                if name.ends_with(".metal") {
                    let path = if folder == "." { name } else { format!("{folder}/{name}") };
                    assert!(
                        FILES.iter().any(|(file, _)| *file == path),
                        "{path} is not in files.rs"
                    );
                    found += 1;
                }
            }
        }
        assert_eq!(found, FILES.len());
    }
}
