//! `cargo xtask test`: checks everything that must hold before a change is good, in one command, on
//! any machine.
//!
//! Every cargo step names the whole workspace with all features. Another selection would unify the
//! dependencies' features differently, and so build wgpu once more.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::adapters::{self, Adapters};
use crate::check_targets;
use crate::process::{Result, TURN, build_program, capture, cargo, own_path, run, tee};
use crate::public_api::{self, Outcome};
use crate::tools::{State, THEIRS};
use crate::{browser, budget, clang, compilers, opengl, packages, parallel, tidy};

/// Arguments that select one build of the dependencies everywhere.
const EVERYTHING: [&str; 2] = ["--workspace", "--all-features"];

/// Test programs whose tests share compiled things: devices, pipelines, and texts in the sanitizer
/// and in clang. nextest starts a process for each test and takes twice the CPU time for these
/// programs.
const IN_ONE_PROCESS: [&str; 2] = ["device", "host"];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Do not type-check for the other platforms.
    #[arg(long)]
    skip_targets: bool,
    /// Everything, also what a commit does by turns: all mutants, all cases, all platforms.
    #[arg(long)]
    whole: bool,
    /// Only the tests: no formatting, lints, docs, public API, packages, OpenGL, processes, demo,
    /// budget or other platforms.
    #[arg(long)]
    quick: bool,
    /// Arguments of the test runner, such as a part of a test's name; doctests are then left out.
    #[arg(last = true)]
    args: Vec<String>,
}

/// The command: stops at the first step that fails.
pub(crate) fn main(options: &Options) -> Result {
    let mut report = Report::default();
    let adapters = report.step("adapters", adapters::prepare)?;
    // Compilers of a chain of crates wait for each other: beside other steps they cost little time.
    // The packages for this step are installed after the adapters', and before any other step.
    let platforms = match options.quick || options.skip_targets {
        true => None,
        false => {
            Some(report.step("other platforms, begun", || check_targets::start(options.whole))?)
        }
    };
    let browser = match options.quick {
        true => None,
        false => Some(report.step("browser, begun", browser::start)?),
    };
    if !options.quick {
        report.step("formatting", formatting)?;
        report.step("clippy", clippy)?;
        report.step("docs", docs)?;
        if let Outcome::Unreadable(why) = report.step("public API", || public_api::check(false))? {
            report.skip("public API", &why);
        }
        report.step("packages", packages::main)?;
        report.step("tidy", tidy::main)?;
    }
    let tools = State::read()?;
    let part = !options.whole && options.args.is_empty() && has_nextest();
    let tools_are_tested = part && tools.is_tested();
    let results = report.step("tests", || tests(&adapters, options, tools_are_tested))?;
    if tools_are_tested {
        report
            .skip("sanitizer, puzzles", "their files and naga have not changed since they passed");
    } else if options.args.is_empty() {
        tools.record()?;
    }
    if !options.quick {
        let part = (!options.whole).then(turn);
        if let Err(why) = report.step("OpenGL", || opengl::test(part, &[]))? {
            report.skip("OpenGL", &why);
        }
        if let Err(why) = report.step("processes", || parallel::test(&adapters))? {
            report.skip("processes", &why);
        }
        report.step("MSL, sanitized", || a_part("sanitize_msl", &[], options))?;
        // Only one language is tested: preparing its cases takes as long as planting the mutants.
        let mutants: &[_] = match turn() % 5 {
            ..2 => &["--language", "msl", "--every", "2"],
            _ => &["--language", "wgsl", "--every", "3"],
        };
        report.step("mutants", || a_part("mutants", mutants, options))?;
        let found = report.step("compilers", compilers::prepare)?;
        for (name, why) in &found.missing {
            report.skip(name, why);
        }
        let part = (!options.whole).then(|| (TURN, turn().to_string()));
        report.step("texts in compilers", || compilers::check(&found, &[], part))?;
        demos(&mut report, &adapters)?;
        report.step("crate budget", budget::main)?;
        match browser {
            None => {}
            Some(Err(why)) => report.skip("browser", &why),
            Some(Ok(build)) => {
                report.step("browser", || build.finish().and_then(|_| in_browser(options)))?;
            }
        }
        match platforms {
            None => report.skip("other platforms", "--skip-targets"),
            Some(Err(why)) => report.skip("other platforms", &why),
            Some(Ok(check)) => {
                report.step("other platforms", || check.finish())?;
            }
        }
    }
    report.print(&adapters, &results);
    Ok(())
}

fn turn() -> u32 {
    let commit = capture(Command::new("git").args(["rev-parse", "--short=8", "HEAD"]));
    commit.ok().and_then(|hash| u32::from_str_radix(hash.trim(), 16).ok()).unwrap_or(0)
}

/// Runs a program of the tests, or the part of it whose turn it is.
fn a_part(program: &str, args: &[&str], options: &Options) -> Result {
    let mut program = clang::program(program)?;
    if !options.whole {
        program.args(args).env(TURN, turn().to_string());
    }
    run(&mut program)
}

/// Runs the suite for browsers, or the part of it whose turn it is.
fn in_browser(options: &Options) -> Result {
    let mut command = Command::new(own_path()?);
    command.arg("browser");
    if !options.whole {
        command.env(TURN, turn().to_string());
    }
    run(&mut command)
}

fn formatting() -> Result {
    run(&mut cargo(["fmt", "--all", "--check"]))
        .map_err(|why| format!("{why}; `cargo fmt --all` mends it"))
}

fn clippy() -> Result {
    run(cargo(["clippy"]).args(EVERYTHING).args(["--all-targets", "--", "-D", "warnings"]))
}

fn docs() -> Result {
    run(cargo(["doc"]).args(EVERYTHING).arg("--no-deps").env("RUSTDOCFLAGS", "-D warnings"))
}

/// Unit tests, suite and doctests; returns the lines in which the runners sum up. Those of the
/// sanitizer and the puzzles may be left out, if nobody named tests.
fn tests(adapters: &Adapters, options: &Options, tools_are_tested: bool) -> Result<Vec<String>> {
    let args = &options.args;
    let test = |command: &mut Command| {
        // A run of named tests has all of their cases.
        if !options.whole && args.is_empty() {
            command.env(TURN, turn().to_string());
        }
        tee_with(adapters, command)
    };
    let mut output = String::new();
    if has_nextest() && args.is_empty() {
        let named = IN_ONE_PROCESS.iter().flat_map(|name| ["--test", name]);
        output += &test(cargo(["test"]).args(EVERYTHING).args(named))?;
        let mut others = IN_ONE_PROCESS.map(|name| format!("not binary({name})")).join(" and ");
        if tools_are_tested {
            others += &format!(" and not ({THEIRS})");
        }
        output += &test(cargo(["nextest", "run"]).args(EVERYTHING).args(["-E", &others]))?;
        // nextest runs no doctests. Without this variable they would run on the CPU, and leave out
        // whatever needs a GPU.
        let mut doctests = cargo(["test", "--doc"]);
        if adapters.has_lavapipe() {
            doctests.env("TILEWISE_ADAPTER", "llvmpipe");
        }
        output += &test(doctests.args(EVERYTHING))?;
    } else if has_nextest() {
        output += &test(cargo(["nextest", "run"]).args(EVERYTHING).args(args))?;
    } else {
        output += &test(cargo(["test"]).args(EVERYTHING).args(args))?;
    }
    Ok(summaries(&output))
}

fn has_nextest() -> bool {
    let mut version = cargo(["nextest", "--version"]);
    version
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn tee_with(adapters: &Adapters, command: &mut Command) -> Result<String> {
    adapters.apply(command);
    tee(command)
}

/// nextest's one line, and the lines of cargo test that report at least one test.
fn summaries(output: &str) -> Vec<String> {
    let is_summary = |line: &&str| {
        line.starts_with("Summary [")
            || line.starts_with("test result:") && !line.contains(" 0 passed; 0 failed")
    };
    output.lines().map(str::trim).filter(is_summary).map(str::to_owned).collect()
}

/// Runs the program's main job twice: on a GPU's driver, and without any driver, when it must turn
/// to the CPU by itself.
fn demos(report: &mut Report, adapters: &Adapters) -> Result {
    let program = report.step("program", || build_program("tilewise"))?;
    let demo = || {
        let mut command = Command::new(&program);
        command.arg("demo");
        command
    };
    if adapters.has_lavapipe() {
        report.step("demo on lavapipe", || {
            let output = tee_with(adapters, demo().env("TILEWISE_ADAPTER", "llvmpipe"))?;
            expect_in(&output, "llvmpipe")
        })?;
        report.step("demo with no driver", || {
            let mut command = demo();
            for hidden in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "__EGL_VENDOR_LIBRARY_FILENAMES"]
            {
                command.env(hidden, "/nonexistent");
            }
            expect_in(&tee(command.env_remove("TILEWISE_ADAPTER"))?, "cpu")
        })
    } else {
        report.step("demo", || run(&mut demo()))?;
        report.step("demo on the CPU", || {
            expect_in(&tee(demo().env("TILEWISE_ADAPTER", "cpu"))?, "cpu")
        })
    }
}

/// Fails if the demo ran on another adapter than the one asked for: it would prove nothing.
fn expect_in(output: &str, adapter: &str) -> Result {
    if output.to_lowercase().contains(adapter) {
        Ok(())
    } else {
        Err(format!("the demo does not say that it ran on `{adapter}`, as it was asked to"))
    }
}

/// The steps done so far, with their durations.
#[derive(Default)]
struct Report {
    lines: Vec<String>,
    passed: usize,
    skipped: usize,
    total: Duration,
}

impl Report {
    fn step<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        println!("\n== {name}");
        let start = Instant::now();
        let value = work().map_err(|why| format!("{name}: {why}"))?;
        let duration = start.elapsed();
        println!("== {name}: {}", in_words(duration));
        self.lines.push(format!("{name:<22}{:>10}", in_words(duration)));
        self.passed += 1;
        self.total += duration;
        Ok(value)
    }

    /// Records a step that was not done; `step` may have counted the attempt already.
    fn skip(&mut self, name: &str, why: &str) {
        if self.lines.last().is_some_and(|line| line.starts_with(name)) {
            self.lines.pop();
            self.passed -= 1;
        }
        self.lines.push(format!("{name:<22}   skipped: {why}"));
        self.skipped += 1;
    }

    fn print(&self, adapters: &Adapters, results: &[String]) {
        println!("\n== summary");
        for line in self.lines.iter().chain(results) {
            println!("{line}");
        }
        let required = if adapters.require.is_empty() {
            "none".to_owned()
        } else {
            adapters.require.join(",")
        };
        println!(
            "xtask test: {} steps passed, {} skipped, in {}; adapters required: {required}",
            self.passed,
            self.skipped,
            in_words(self.total)
        );
    }
}

fn in_words(duration: Duration) -> String {
    match duration.as_secs() {
        0..60 => format!("{:.1} s", duration.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_both_runners() {
        let output = "     Summary [   1.2s] 3 tests run: 3 passed, 0 skipped\n\
                      other\n\
                      test result: ok. 0 passed; 0 failed; 0 ignored\n\
                      test result: ok. 2 passed; 0 failed; 0 ignored\n";
        assert_eq!(
            summaries(output),
            [
                "Summary [   1.2s] 3 tests run: 3 passed, 0 skipped",
                "test result: ok. 2 passed; 0 failed; 0 ignored"
            ]
        );
    }

    #[test]
    fn a_skipped_attempt_is_not_counted_as_passed() {
        let mut report = Report::default();
        assert_eq!(report.step("a", || Ok(1)), Ok(1));
        assert_eq!(report.step("b", || Ok(2)), Ok(2));
        report.skip("b", "why");
        assert_eq!((report.passed, report.skipped, report.lines.len()), (1, 1, 2));
        assert_eq!(
            report.step("c", || Err::<(), _>("broken".to_owned())),
            Err("c: broken".to_owned())
        );
    }

    #[test]
    fn durations() {
        assert_eq!(in_words(Duration::from_millis(1500)), "1.5 s");
        assert_eq!(in_words(Duration::from_secs(125)), "2 min 5 s");
    }
}
