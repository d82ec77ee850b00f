//! The sanitizer's and the puzzles' own tests, which are run again only if their files, or naga,
//! differ from those with which the tests passed: the tree has a digest of these.
//!
//! A digest of contents knows neither commits nor dates. So no push of several commits, no merge
//! and no rebase can make an untested state look tested, and any difference only costs time. What
//! the library changes under the puzzles is tested with `--whole`.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::process::Command;

use crate::process::{Result, capture};
use crate::tidy::collect;

/// The packages, in nextest's language: these tests alone.
pub(crate) const THEIRS: &str = "package(tilewise-sanitizer) or package(tilewise-puzzles)";
const FOLDERS: [&str; 2] = ["crates/sanitizer", "crates/puzzles"];
/// The line that says what passed.
const RECORD: &str = "xtask/tested.txt";

/// Version of naga and digest of the files, as a line.
pub(crate) struct State(String);

impl State {
    /// The state of the checkout.
    pub(crate) fn read() -> Result<State> {
        let failed = |path: &str, why| format!("cannot read {path}: {why}");
        let mut files = Vec::new();
        FOLDERS.iter().try_for_each(|folder| collect(Path::new(folder), &mut files))?;
        files.sort();
        let mut digest = DefaultHasher::new();
        for path in &files {
            let bytes = fs::read(path).map_err(|why| failed(path, why))?;
            (path, bytes).hash(&mut digest);
        }
        let lock = fs::read_to_string("Cargo.lock").map_err(|why| failed("Cargo.lock", why))?;
        Ok(State(format!("naga {}, files {:016x}\n", naga(&lock)?, digest.finish())))
    }

    /// Whether the tests passed in this state. Without the history nobody can see who recorded
    /// that: then it does not count.
    pub(crate) fn is_tested(&self) -> bool {
        let shallow = capture(Command::new("git").args(["rev-parse", "--is-shallow-repository"]));
        shallow.is_ok_and(|answer| answer.trim() == "false")
            && fs::read_to_string(RECORD).is_ok_and(|record| record == self.0)
    }

    /// Records that the tests have passed in this state.
    pub(crate) fn record(&self) -> Result {
        if fs::read_to_string(RECORD).is_ok_and(|record| record == self.0) {
            return Ok(());
        }
        println!("{RECORD} says what passed; commit it with the change");
        fs::write(RECORD, &self.0).map_err(|why| format!("cannot write {RECORD}: {why}"))
    }
}

/// The version of naga in a lock file; each if there are several.
fn naga(lock: &str) -> Result<String> {
    let after = |line: &str| Some(line.strip_prefix("version = \"")?.strip_suffix('"')?.to_owned());
    let lines = || lock.lines().zip(lock.lines().skip(1));
    let versions: Vec<_> = lines()
        .filter(|(name, _)| *name == "name = \"naga\"")
        .filter_map(|(_, version)| after(version))
        .collect();
    match versions.is_empty() {
        true => Err("Cargo.lock has no naga".into()),
        false => Ok(versions.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_naga() {
        let lock = "name = \"nag\"\nversion = \"1.0.0\"\n\nname = \"naga\"\nversion = \"30.0.1\"\n";
        assert_eq!(naga(lock), Ok("30.0.1".to_owned()));
        assert!(naga("name = \"other\"\nversion = \"1.0.0\"\n").is_err());
    }
}
