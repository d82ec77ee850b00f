//! `cargo xtask bench`: the benchmark program in release mode, with the given arguments and reports
//! in `target/bench/`.

use crate::process::{Result, capture, cargo, run};
use std::process::Command;

/// Runs the `bench` program of benches/ with `args`, tells it the commit for its record, and has it
/// write its reports.
pub(crate) fn main(args: &[String]) -> Result {
    let mut command =
        cargo(["run", "--release", "--package", "tilewise-benches", "--bin", "bench", "--"]);
    let commit = commit();
    run(command.args(args).args(added(args, &commit)))
}

/// Arguments to add to the given ones: the commit that is measured, and where the reports go.
fn added<'a>(args: &[String], commit: &'a str) -> Vec<&'a str> {
    let named = |option: &str| args.iter().any(|arg| arg.split('=').next() == Some(option));
    let first_hour = named("--first-hour");
    let json = if first_hour { "target/bench/first-hour.json" } else { "target/bench/report.json" };
    let mut added = Vec::new();
    for (option, value) in
        [("--commit", commit), ("--json", json), ("--html", "target/bench/report.html")]
    {
        // A report that `--from` shows has its commit and its JSON already. The first hour writes
        // one file.
        let wanted = if option == "--html" { !first_hour } else { !named("--from") };
        if !named(option) && wanted {
            added.extend([option, value]);
        }
    }
    added
}

/// The commit of the tree, with `+changes` when files differ from it; `unknown` outside a checkout.
pub(crate) fn commit() -> String {
    let git = |args: &[&str]| capture(Command::new("git").args(args));
    let Ok(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return "unknown".into() };
    let changed = git(&["status", "--porcelain"]).is_ok_and(|changes| !changes.trim().is_empty());
    format!("{}{}", commit.trim(), if changed { "+changes" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_written_unless_the_arguments_say_where() {
        let of = |line: &str| {
            added(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>(), "1a2b3c4")
                .join(" ")
        };
        let all =
            "--commit 1a2b3c4 --json target/bench/report.json --html target/bench/report.html";
        assert_eq!((of("").as_str(), of("--quick --quiet").as_str()), (all, all));
        assert_eq!(of("--json=a.json --html b.html"), "--commit 1a2b3c4");
        assert_eq!(of("--from a.json"), "--html target/bench/report.html");
        assert_eq!(
            of("--backend metal --first-hour"),
            "--commit 1a2b3c4 --json target/bench/first-hour.json"
        );
        assert_eq!(of("--first-hour --json a.json"), "--commit 1a2b3c4");
    }
}
