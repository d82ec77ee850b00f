//! From the parts of a pass to the text of one MSL library. Two rules of those that assemble WGSL serve here as well, and C++ does the rest:
//!
//! 1. Whole files are concatenated, in the order of the parts.
//! 2. A file instantiated for an operand has the prefix `x_` (`X_`) of its identifiers replaced by the operand's name.
//!
//! Before them stand the constants of all parts, and the slot of every buffer as `NAME_SLOT`.

use crate::files::FILES;
use std::fmt::Write;
use tilewise_core::kernel::Role;
use tilewise_core::plan::Pass;

/// The entry point of every text.
pub const ENTRY: &str = "tilewise";

/// The MSL of a pass. Every file named by the tables exists: a test assembles them all.
///
/// # Panics
/// When a part names a file that does not exist, or two parts give a constant two values, which only a mistake in the tables can cause.
pub fn assemble(pass: &Pass) -> String {
    assemble_with(pass, |_| None).unwrap_or_else(|why| panic!("{why}"))
}

/// As [`assemble`], with another text for the files that `replaced` knows by their path: for tests of what a change does.
///
/// # Errors
/// As [`assemble`] panics, in words.
pub fn assemble_with<'a>(pass: &Pass, replaced: impl Fn(&str) -> Option<&'a str>) -> Result<String, String> {
    let mut text = constants(pass)?;
    let roles = pass.bindings.iter().map(|binding| binding.role);
    for (role, slot) in std::iter::once(Role::Params).chain(roles).zip(0..) {
        let _ = writeln!(text, "#define {}_SLOT {slot}", role.name().to_uppercase().replace(' ', "_"));
    }
    for part in &pass.parts {
        let own = || FILES.iter().find(|(path, _)| *path == part.file).map(|(_, text)| *text);
        let file = replaced(part.file).or_else(own).ok_or_else(|| format!("no MSL file {}", part.file))?;
        let _ = write!(text, "\n{}", part.instantiate(file));
    }
    Ok(text)
}

/// The constants of all parts, each once.
fn constants(pass: &Pass) -> Result<String, String> {
    let mut known: Vec<(String, u32)> = Vec::new();
    for part in &pass.parts {
        for (name, value) in &part.constants {
            let name = part.instantiate(name);
            match known.iter().find(|(other, _)| *other == name) {
                None => known.push((name, *value)),
                Some((_, other)) if other == value => {}
                Some((_, other)) => return Err(format!("{name} is to be {other} and {value}")),
            }
        }
    }
    Ok(known.iter().map(|(name, value)| format!("constexpr constant uint {name} = {value};\n")).collect())
}
