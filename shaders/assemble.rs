//! From the part files of a pass to the text of one WGSL module. Six rules, and no preprocessor
//! beyond them:
//!
//! 1. Whole files are concatenated: the files of the pass, and the files that these need
//!    (`link.rs`).
//! 2. In a line `const NAME: type = value; //param` the value is replaced.
//! 3. A file instantiated for an operand has the prefix `x_` (`X_`) of its identifiers replaced by
//!    the operand's name.
//! 4. A loop marked `//unroll` is repeated in blocks with a constant index, if the pass says so:
//!    see `unroll.rs`.
//! 5. If the pass strides, a workgroup runs the body of `main` for its own tile, then for the
//!    one that is as many tiles further as there are workgroups, and so on, until it returns. Such
//!    a mainloop ends with a barrier.
//! 6. Aliases are expanded: see `aliases.rs`.
//!
//! Extensions are enabled at the top when a part file needs them. Then comes the struct [`Params`].
//! The comment at the top of a file stays out of the text: it is for readers, at any length.

use crate::aliases::without_aliases;
use crate::tables::SOURCES;
use crate::unroll::unroll;
use tilewise_core::Params;
use tilewise_core::kernel::Language;
use tilewise_core::plan::{Part, Pass};

/// The WGSL module of a pass. Every file named by the tables exists: a test assembles them all.
///
/// # Panics
/// When a part names a file or a constant that does not exist, or files do not link
/// ([`Sources::link`](crate::Sources::link)), which only a mistake in the tables or the files can
/// cause.
pub fn assemble(pass: &Pass) -> String {
    assemble_with(pass, |_| None).unwrap_or_else(|why| panic!("{}: {why}", pass.label))
}

/// Like [`assemble`], with other texts for some of the files: `replaced` gives the text for a path,
/// or nothing for the library's own. The mutation check runs kernels with a mistake in them this
/// way.
///
/// # Errors
/// The reason why files cannot be put together.
pub fn assemble_with<'a>(
    pass: &Pass,
    replaced: impl Fn(&str) -> Option<&'a str>,
) -> Result<String, String> {
    let mut text = String::with_capacity(16 << 10);
    if pass.f16 {
        text.push_str("enable f16;\n");
    }
    if pass.coop {
        text.push_str("enable wgpu_cooperative_matrix;\n");
    }
    text.push_str(&Params::declaration(Language::Wgsl));
    for part in &SOURCES.link(&pass.parts)? {
        let file = replaced(part.file).map_or_else(|| SOURCES.text(part.file), Ok)?;
        text.push_str(&instantiate(pass, part, file)?);
        text.push('\n');
    }
    if pass.strides {
        text = striding(&text).ok_or("a mainloop that strides has no main")?;
    }
    let text = without_aliases(&text);
    if pass.unroll { unroll(&text) } else { Ok(text) }
}

/// The text with the body of `main` in a loop over a workgroup's tiles.
fn striding(text: &str) -> Option<String> {
    let main = text.find("fn main(")?;
    let body = main + text[main..].find("{\n")? + 2;
    let end = body + text[body..].find("\n}\n")? + 1;
    let loops = "for (var id = linear_id(workgroup); ; id += params.grid_x) {\n";
    let own = text[body..end].replace("linear_id(workgroup)", "id");
    Some([&text[..body], loops, &own, "}\n", &text[end..]].concat())
}

fn instantiate(pass: &Pass, part: &Part, file: &str) -> Result<String, String> {
    let mut used = 0;
    let mut text = String::with_capacity(file.len() + 64);
    for line in file.lines().skip_while(|line| line.starts_with("//")) {
        if pass.beside_c && is_beside_c(pass, part, line) {
            text.push_str(&line.replace("<storage, read>", "<storage, read_write>"));
            text.push('\n');
            continue;
        }
        match parameter(line) {
            Some((name, ty)) => match part.constants.iter().find(|(constant, _)| *constant == name)
            {
                Some((_, value)) => {
                    used += 1;
                    text.push_str(&format!("const {name}: {ty} = {};", literal(ty, *value)));
                }
                None => text.push_str(line),
            },
            None => text.push_str(line),
        }
        text.push('\n');
    }
    if used != part.constants.len() {
        return Err(format!("{} lacks one of the constants {:?}", part.file, part.constants));
    }
    Ok(part.instantiate(&text))
}

/// Whether a line declares a buffer that is bound as if it were written.
fn is_beside_c(pass: &Pass, part: &Part, line: &str) -> bool {
    let number = || {
        let (number, _) = line.split_once("@binding(")?.1.split_once(')')?;
        let constant = || part.constants.iter().find(|(constant, _)| *constant == number);
        number.parse().ok().or_else(|| constant().map(|(_, value)| *value))
    };
    number().is_some_and(|number: u32| {
        let mut bindings = pass.bindings.iter();
        bindings.any(|bound| bound.role.binding() == number && !pass.read_only(bound))
    })
}

/// Name and type of the constant that a `//param` line declares.
fn parameter(line: &str) -> Option<(&str, &str)> {
    let declaration = line.strip_suffix("//param")?.strip_prefix("const ")?;
    let (name, rest) = declaration.split_once(": ")?;
    Some((name, rest.split_once(" = ")?.0))
}

fn literal(ty: &str, value: u32) -> String {
    match ty {
        "bool" => (value != 0).to_string(),
        _ => format!("{value}u"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FILES;

    #[test]
    fn replaces_parameters_by_type() {
        assert_eq!(parameter("const TM: u32 = 4u; //param"), Some(("TM", "u32")));
        assert_eq!(parameter("const TM: u32 = 4u;"), None);
        assert_eq!(literal("bool", 1), "true");
        assert_eq!(literal("u32", 7), "7u");
    }

    #[test]
    fn every_file_is_listed() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        for folder in [".", "schedule", "operand", "mainloop", "unit", "epilogue", "convert"] {
            for entry in std::fs::read_dir(root.join(folder)).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let path = if folder == "." { name.clone() } else { format!("{folder}/{name}") };
                if name.ends_with(".wgsl") {
                    assert!(
                        FILES.iter().any(|(file, _)| *file == path),
                        "{path} is not in files.rs"
                    );
                }
            }
        }
    }
}
