//! `cargo xtask tidy`: checks of texts that neither the compiler nor clippy makes.

mod columns;
mod openers;
mod references;
mod wordings;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::circles::Folders;
use crate::process::Result;
use references::Checkout;

/// Kinds of files that are read.
const TEXTS: [&str; 8] = ["rs", "wgsl", "metal", "h", "cpp", "py", "toml", "md"];

/// The most lines of a file: a longer one is several files.
const MOST_LINES: usize = 500;

// Joined from halves, so that this file does not accuse itself.
const MARKERS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
const CONFLICT: [&str; 2] = [concat!("<<<<", "<<< "), concat!(">>>>", ">>> ")];
const UNSAFE: [&str; 2] = [concat!("unsafe", " {"), concat!("unsafe", " impl")];
const SHADER_TEXT: [&str; 4] = [
    concat!("@", "compute"),
    concat!("workgroup", "Barrier("),
    concat!(") -> ", "vec"),
    concat!("bit", "cast<"),
];

/// The command: reads every text file of the checkout and prints what is to be mended.
pub(crate) fn main() -> Result {
    let mut files = Vec::new();
    collect(Path::new("."), &mut files)?;
    files.sort();
    let mut complaints = Vec::new();
    let mut folders = Folders::default();
    let mut checkout = Checkout::default();
    files.iter().for_each(|path| checkout.add_path(path));
    files.retain(|path| TEXTS.contains(&path.rsplit('.').next().unwrap_or_default()));
    let read = |path: &String| {
        fs::read_to_string(path).map_err(|error| format!("cannot read {path} as text: {error}"))
    };
    let texts = files.iter().map(read).collect::<Result<Vec<_>>>()?;
    files.iter().zip(&texts).for_each(|(path, text)| checkout.add_text(path, text));
    for (path, text) in files.iter().zip(&texts) {
        complaints.extend(examine(path, text));
        let further = columns::too_long(path, text)
            .chain(openers::fragments(path, text))
            .chain(wordings::doubtful(path, text))
            .chain(checkout.complaints(path, text));
        complaints.extend(further.map(|(line, what)| format!("{path}:{}: {what}", line + 1)));
        folders.add(path, text);
    }
    complaints.extend(folders.complaints());
    println!("{} files read", files.len());
    if complaints.is_empty() {
        return Ok(());
    }
    for complaint in &complaints {
        println!("{complaint}");
    }
    Err(format!("{} places are untidy", complaints.len()))
}

/// Gathers files as paths with `/` from the root; hidden ones and build outputs are left out.
pub(crate) fn collect(folder: &Path, files: &mut Vec<String>) -> Result {
    let failed = |error| format!("cannot list {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if path.is_symlink() || name.starts_with('.') && name != "." {
            continue;
        }
        if path.is_dir() {
            if name != "target" {
                collect(&path, files)?;
            }
        } else {
            let relative = path.strip_prefix(".").unwrap_or(&path);
            files.push(relative.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

/// The complaints about one file, each with its place, the reason, and how to mend it.
fn examine(path: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_rust = path.ends_with(".rs");
    let mut complaints = Vec::new();
    let mut complain =
        |line: usize, what: String| complaints.push(format!("{path}:{}: {what}", line + 1));

    if (is_rust || path.ends_with(".wgsl")) && lines.len() > MOST_LINES {
        complain(
            MOST_LINES,
            format!(
                "{} lines; nobody holds more than {MOST_LINES} in mind: split the file by its \
                 parts",
                lines.len()
            ),
        );
    }
    // Shader text may stand in tests: a test shows best what it runs.
    let tests_begin =
        lines.iter().position(|line| line.trim() == "#[cfg(test)]").unwrap_or(lines.len());
    let in_tests = path.split('/').any(|part| part == "tests" || part == "tests.rs")
        && !path.starts_with("tests/src/");
    let is_test = |line: usize| in_tests || line > tests_begin;
    for (number, line) in lines.iter().enumerate() {
        if let Some(marker) = MARKERS.iter().find(|marker| line.contains(*marker)) {
            complain(
                number,
                format!(
                    "{marker} is read by nobody: do it now, or open an issue and drop the note"
                ),
            );
        }
        if CONFLICT.iter().any(|mark| line.starts_with(mark)) {
            complain(number, "a merge left both sides here: keep one text".to_owned());
        }
        if !is_rust || is_comment(line) {
            continue;
        }
        if SHADER_TEXT.iter().any(|word| line.contains(word)) && !is_test(number) {
            complain(
                number,
                "shader text in Rust escapes the editors and checks that read WGSL: \
                 move it to a .wgsl file and include it"
                    .to_owned(),
            );
        }
        if UNSAFE.iter().any(|word| line.contains(word)) && !is_justified(&lines, number) {
            complain(
                number,
                "an unsafe block with no argument for it: say in a `// SAFETY:` comment right \
                 above which conditions the operation needs and why they hold here"
                    .to_owned(),
            );
        }
    }
    complaints
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// Whether a SAFETY comment stands above the statement that holds line `number`. The statement may
/// have begun on earlier lines; the search ends at a line that ends another statement or opens a
/// block.
fn is_justified(lines: &[&str], number: usize) -> bool {
    for line in lines[..number].iter().rev() {
        if is_comment(line) {
            if line.contains("SAFETY:") {
                return true;
            }
        } else if line.trim().is_empty() || line.trim_end().ends_with([';', '{', '}']) {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of `text` that are complained about, if its file has that path.
    fn lines_of(path: &str, text: &str) -> Vec<usize> {
        let complaints = examine(path, text);
        let line = |complaint: &String| complaint[path.len() + 1..].split(':').next()?.parse().ok();
        complaints.iter().filter_map(line).collect()
    }

    #[test]
    fn long_files() {
        let long = "\n".repeat(MOST_LINES + 1);
        assert_eq!(lines_of("a.rs", &long), [MOST_LINES + 1]);
        assert_eq!(lines_of("a.wgsl", &long), [MOST_LINES + 1]);
        assert!(lines_of("a.md", &long).is_empty());
        assert!(lines_of("a.rs", &long[1..]).is_empty());
    }

    #[test]
    fn notes_to_self() {
        for marker in MARKERS {
            assert_eq!(lines_of("a.rs", &format!("fn f() {{}}\n// {marker}: mend\n")), [2]);
            assert_eq!(lines_of("a.md", &format!("{marker}\n")), [1]);
        }
        assert!(lines_of("a.rs", "// to do\n").is_empty());
    }

    #[test]
    fn conflicts() {
        for mark in CONFLICT {
            assert_eq!(lines_of("a.md", &format!("kept\n{mark}side\n")), [2]);
            assert!(lines_of("a.md", &format!("kept {mark}\n")).is_empty());
        }
    }

    #[test]
    fn shader_text_in_rust() {
        for word in SHADER_TEXT {
            let planted = format!("const S: &str = \"{word}\";\n");
            assert_eq!(lines_of("crates/tilewise/src/a.rs", &planted), [1]);
            assert_eq!(lines_of("shaders/lib.rs", &planted), [1]);
            assert!(
                lines_of("shaders/lib.rs", &format!("#[cfg(test)]\nmod tests {{\n{planted}}}\n"))
                    .is_empty()
            );
            assert!(lines_of("shaders/assemble/tests.rs", &planted).is_empty());
            assert!(lines_of("tests/tests/device/kernel.rs", &planted).is_empty());
            assert_eq!(lines_of("tests/src/runner.rs", &planted), [1]);
            assert!(lines_of("shaders/mainloop/naive.wgsl", &planted).is_empty());
            assert!(
                lines_of("crates/tilewise/src/a.rs", &format!("/// A body without `{word}`.\n"))
                    .is_empty()
            );
        }
    }

    #[test]
    fn unsafe_without_argument() {
        let [block, implementation] = UNSAFE;
        assert_eq!(lines_of("a.rs", &format!("fn f() {{\n    {block} g() }}\n}}\n")), [2]);
        assert_eq!(lines_of("a.rs", &format!("{implementation} Send for A {{}}\n")), [1]);
        let argued = format!(
            "fn f() {{\n    // SAFETY: g takes no pointer,\n    // and has no state.\n    {block} \
             g() }}\n}}\n"
        );
        assert!(lines_of("a.rs", &argued).is_empty());
        let broken = format!(
            "fn f() {{\n    // SAFETY: as above.\n    let a =\n        {block} g() }};\n}}\n"
        );
        assert!(lines_of("a.rs", &broken).is_empty());
        let another =
            format!("fn f() {{\n    // SAFETY: for h.\n    let b = h();\n    {block} g() }}\n}}\n");
        assert_eq!(lines_of("a.rs", &another), [4]);
    }
}
