//! `cargo xtask public-api`: compares what users of the libraries can name with the lists that are
//! kept. The public API then changes only on purpose.
//!
//! rustdoc writes its JSON only with unstable options, and a stable rustdoc takes these only with
//! `RUSTC_BOOTSTRAP`. Some build scripts look at that variable: if it were set for all of cargo,
//! half of the dependencies would be built once more. Therefore cargo is given this program in
//! rustdoc's place, and this program sets the variable for rustdoc alone.

use std::collections::{BTreeSet, HashSet};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use public_api::PublicItem;

use crate::process::{Result, capture, cargo, run};

/// The library, and the crates whose items it re-exports.
const LIBRARIES: [&str; 4] = [FACE, VOCABULARY, "tilewise_files", "tilewise_sanitizer"];
const FACE: &str = "tilewise";
/// Only the items of this crate that [`FACE`] re-exports by name count: the planner is free to
/// change.
const VOCABULARY: &str = "tilewise_core";

/// The folder of the lists.
const KEPT: &str = "tests/goldens/public-api";

/// Opens a line of a list that is no item.
const COMMENT: &str = "//";

/// The version of rustdoc's JSON that the reader knows. Rust 1.93 to 1.95 write it, and a job of
/// the CI uses one of them.
const FORMAT: u64 = 57;

/// The feature whose items are not listed: they may change in any release.
const UNSTABLE: &str = "planner";

/// Tells this program that cargo called it in the place of the rustdoc that it names.
const AS_RUSTDOC: &str = "XTASK_AS_RUSTDOC";

/// Whether the lists could be compared.
pub(crate) enum Outcome {
    Same,
    /// This rustdoc writes another version of its JSON.
    Unreadable(String),
}

/// The command.
pub(crate) fn main(bless: bool) -> Result {
    match check(bless)? {
        Outcome::Same => Ok(()),
        Outcome::Unreadable(why) => Err(why),
    }
}

/// Lists the items and compares them with the lists that are kept, or replaces those lists.
pub(crate) fn check(bless: bool) -> Result<Outcome> {
    document()?;
    let folder = documentation()?;
    let mut reexported = BTreeSet::new();
    let mut differences = 0;
    for library in LIBRARIES {
        let json = folder.join(format!("{library}.json"));
        if let Some(other) = other_format(&json)? {
            return Ok(Outcome::Unreadable(format!(
                "this rustdoc writes version {other} of its JSON, not {FORMAT}; Rust 1.95 does"
            )));
        }
        let mut items = items(&json)?;
        match library {
            FACE => reexported = reexports(&items),
            VOCABULARY => items.retain(|item| is_about(item, VOCABULARY, &reexported)),
            _ => {}
        }
        let kept = Path::new(KEPT).join(format!("{}.txt", library.replace('_', "-")));
        if bless {
            keep(&kept, &items)?;
        }
        differences += compare(&kept, &items)?;
    }
    if differences == 0 {
        return Ok(Outcome::Same);
    }
    Err(format!(
        "{differences} lines differ; CONTRIBUTING.md says when `cargo xtask public-api --bless` \
         may keep them"
    ))
}

fn keep(path: &Path, items: &BTreeSet<String>) -> Result {
    let head = format!("{COMMENT} With all features, except `{UNSTABLE}` of `{FACE}`.\n");
    let text: String = items.iter().map(|item| format!("{item}\n")).collect();
    fs::create_dir_all(KEPT)
        .and_then(|()| fs::write(path, head + &text))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Prints the lines in which a list differs from the items, and returns how many there are.
fn compare(path: &Path, items: &BTreeSet<String>) -> Result<usize> {
    let text = fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let lines = difference(&text, items);
    println!("{}: {} public items, {} lines differ", path.display(), items.len(), lines.len());
    for line in &lines {
        println!("{line}");
    }
    Ok(lines.len())
}

/// Makes rustdoc write its JSON.
fn document() -> Result {
    let this = env::current_exe().map_err(|error| format!("cannot name this program: {error}"))?;
    let rustdoc = env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into());
    run(cargo(["doc", "--workspace", "--all-features", "--no-deps", "--quiet"])
        .env("RUSTDOC", this)
        .env(AS_RUSTDOC, rustdoc)
        .env("RUSTDOCFLAGS", "-Z unstable-options --output-format json"))
}

/// rustdoc's arguments and its path, if cargo called this program in its place. The unstable
/// feature is taken out.
pub(crate) fn called_as_rustdoc() -> Option<Command> {
    let mut rustdoc = Command::new(env::var_os(AS_RUSTDOC)?);
    rustdoc.args(stable(env::args_os().skip(1))).env("RUSTC_BOOTSTRAP", "1").env_remove(AS_RUSTDOC);
    Some(rustdoc)
}

/// The arguments without the one that switches the unstable feature on, and the `--cfg` before it.
fn stable(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let unstable = format!("feature=\"{UNSTABLE}\"");
    let mut kept: Vec<OsString> = Vec::new();
    for arg in args {
        if arg == *unstable { drop(kept.pop()) } else { kept.push(arg) }
    }
    kept
}

/// Runs rustdoc, except for a crate whose items are not listed.
pub(crate) fn as_rustdoc(mut rustdoc: Command) -> Result {
    match crate_name(rustdoc.get_args().map(OsString::from)) {
        Some(name) if !LIBRARIES.contains(&name.as_str()) => Ok(()),
        _ => {
            let status = rustdoc.status().map_err(|error| format!("rustdoc: {error}"))?;
            if status.success() { Ok(()) } else { Err(format!("rustdoc failed ({status})")) }
        }
    }
}

/// The crate that rustdoc is to document; none if cargo asks rustdoc about itself.
fn crate_name(args: impl IntoIterator<Item = OsString>) -> Option<String> {
    let mut args = args.into_iter().skip_while(|arg| arg != "--crate-name");
    args.nth(1)?.into_string().ok()
}

/// Where cargo puts documentation.
fn documentation() -> Result<PathBuf> {
    let metadata = capture(&mut cargo(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)
        .map_err(|error| format!("cargo metadata writes no JSON: {error}"))?;
    let target = metadata["target_directory"].as_str().ok_or("cargo metadata names no target")?;
    Ok(Path::new(target).join("doc"))
}

/// The version of rustdoc's JSON in this file, if it is not the one that the reader knows.
fn other_format(json: &Path) -> Result<Option<u64>> {
    let text = fs::read_to_string(json)
        .map_err(|error| format!("cannot read {}: {error}", json.display()))?;
    let value: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| format!("{} is no JSON: {error}", json.display()))?;
    let version = value["format_version"].as_u64().unwrap_or_default();
    Ok((version != FORMAT).then_some(version))
}

/// A library's public items, one line each.
fn items(json: &Path) -> Result<BTreeSet<String>> {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .build()
        .map_err(|error| format!("cannot list the items of {}: {error}", json.display()))?;
    let of_traits = api.items().filter(|item| implemented(&item.to_string()).is_some());
    let of_traits: HashSet<_> = of_traits.map(PublicItem::id).collect();
    // Items of trait implementations are left out: the trait lists them.
    let is_own = |item: &&PublicItem| item.parent_id().is_none_or(|id| !of_traits.contains(&id));
    let items = api.items().filter(is_own).map(ToString::to_string);
    Ok(items.filter(|item| says_something(item)).collect())
}

/// The trait that a line implements, and the type.
fn implemented(item: &str) -> Option<(&str, &str)> {
    item.strip_prefix("impl")?.split_once(" for ")
}

/// Whether a line is worth listing. Headings of methods are not, nor are traits that the compiler
/// gives to almost every type; types that lack `Send` or `Sync` are listed.
fn says_something(item: &str) -> bool {
    const UNMISSED: [&str; 6] =
        ["Freeze", "RefUnwindSafe", "StructuralPartialEq", "Unpin", "UnsafeUnpin", "UnwindSafe"];
    const EXPECTED: [&str; 2] = ["Send", "Sync"];
    match implemented(item) {
        Some((name, _)) => {
            let is = |own: &&str| name.strip_suffix(own).is_some_and(|path| path.ends_with("::"));
            !UNMISSED.iter().any(is) && (name.contains('!') || !EXPECTED.iter().any(is))
        }
        None => !item.starts_with("impl"),
    }
}

/// The names that the library re-exports.
fn reexports(items: &BTreeSet<String>) -> BTreeSet<String> {
    let prefix = format!("pub use {FACE}::");
    items.iter().filter_map(|item| item.strip_prefix(&prefix)).map(str::to_owned).collect()
}

/// Whether a line is about one of these types: one of the names must occur in a path. For an
/// implementation that is the path of the type that gets the trait, else the first path of this
/// library.
fn is_about(item: &str, library: &str, names: &BTreeSet<String>) -> bool {
    let about = implemented(item).map_or(item, |(_, implementor)| implementor);
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let Some((_, rest)) = about.split_once(&format!("{library}::")) else { return false };
    let path = rest.split(|c| !is_path(c)).next().unwrap_or_default();
    path.split("::").any(|name| names.contains(name))
}

/// The lines that are gone, with `-`, and the new lines, with `+`.
fn difference(kept: &str, items: &BTreeSet<String>) -> Vec<String> {
    let kept = kept.lines().filter(|line| !line.starts_with(COMMENT));
    let kept: BTreeSet<String> = kept.map(str::to_owned).collect();
    let gone = kept.difference(items).map(|item| format!("- {item}"));
    let came = items.difference(&kept).map(|item| format!("+ {item}"));
    gone.chain(came).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(lines: &[&str]) -> BTreeSet<String> {
        lines.iter().map(|&line| line.to_owned()).collect()
    }

    #[test]
    fn headings_and_unmissed_traits_are_left_out() {
        for kept in [
            "pub fn a::B::c(&self)",
            "impl !core::marker::Sync for a::B",
            "impl<'a> core::convert::From<&'a a::B> for a::C<'a>",
        ] {
            assert!(says_something(kept), "{kept}");
        }
        for left_out in [
            "impl a::B",
            "impl core::marker::Send for a::B",
            "impl<'a> core::marker::Sync for a::C<'a>",
            "impl<'a> a::C<'a>",
            "impl !core::marker::Freeze for a::B",
            "impl<'a> core::panic::unwind_safe::UnwindSafe for a::C<'a>",
        ] {
            assert!(!says_something(left_out), "{left_out}");
        }
    }

    #[test]
    fn what_a_line_is_about() {
        let names = reexports(&set(&[
            "pub use tilewise::DType",
            "pub use tilewise::core",
            "pub fn tilewise::f()",
        ]));
        assert_eq!(names, set(&["DType", "core"]));
        for line in [
            "pub enum core::DType",
            "pub core::DType::F16",
            "pub const fn core::DType::bits(self) -> u32",
            "impl core::clone::Clone for core::DType",
            "pub fn core::a::DType::plan(self) -> core::Plan",
        ] {
            assert!(is_about(line, "core", &names), "{line}");
        }
        for line in
            ["pub core::Plan::a: core::DType", "impl From<core::DType> for core::Plan", "pub use b"]
        {
            assert!(!is_about(line, "core", &names), "{line}");
        }
    }

    #[test]
    fn both_directions_of_a_difference() {
        assert_eq!(difference("// head\na\nb\n", &set(&["b", "c"])), ["- a", "+ c"]);
        assert!(difference("a\nb\n", &set(&["b", "a"])).is_empty());
    }

    #[test]
    fn the_unstable_feature_is_switched_off() {
        let args = ["--cfg", "feature=\"files\"", "--cfg", "feature=\"planner\"", "lib.rs"];
        let kept = ["--cfg", "feature=\"files\"", "lib.rs"];
        assert_eq!(stable(args.map(OsString::from).into_iter()), kept);
    }

    #[test]
    fn the_crate_that_cargo_names() {
        let args = ["--edition=2024", "--crate-type", "lib", "--crate-name", "a", "lib.rs"];
        assert_eq!(crate_name(args.map(OsString::from)).as_deref(), Some("a"));
        assert_eq!(crate_name([OsString::from("-vV")]), None);
    }
}
