//! `cargo xtask suite`: runs the tests that need a device, on the hardware of this machine, with an
//! outcome that can be recorded.
//!
//! Software adapters have no matrix units, so kernels for these run on hardware only. A machine
//! with a good GPU often has no Rust: `--pack` makes a folder of programs that need nothing but the
//! driver.

mod outcome;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::bench::commit;
use crate::process::{Result, capture, cargo, find_program, run};
use outcome::Outcome;

/// The package whose test binaries are the suite.
const PACKAGE: &str = "tilewise-tests";
/// Its test binaries that touch a device.
const ON_DEVICE: [&str; 3] = ["device", "overheads", "waiting"];
/// The other test binaries, and what each of them does.
const LEFT_OUT: [(&str, &str); 3] = [
    ("first_step", "measures what a software driver compiles"),
    ("host", "runs on the CPU"),
    ("msl_fallback", "needs a device that refuses MSL, as software adapters do"),
];
/// The program of that package that tests start as a process of its own, and the variable that
/// tells tests where it lies.
const PROGRAM: (&str, &str) = ("product", "CARGO_BIN_EXE_product");
/// The test that lists the adapters; it runs first.
const LISTING: &str = "adapters::listed";
/// The variable that tells glvnd where OpenGL's drivers are. If a process had initialised OpenGL,
/// NVIDIA's driver was seen to hang when threads ended (benches/record/NOTES.md). Therefore the
/// suite hides OpenGL, unless the variable is set already.
const GL_DRIVERS: &str = "__EGL_VENDOR_LIBRARY_FILENAMES";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Use software adapters too, and do not fail without hardware
    #[arg(long)]
    software: bool,
    /// Require of some adapter, as in TILEWISE_REQUIRE: coop, f16, vulkan, ...
    #[arg(long, value_delimiter = ',')]
    require: Vec<String>,
    /// Write the outcome as text, after every group
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Copy the stripped test binaries and this program into FOLDER instead of running them; there:
    /// `./xtask suite --from .`
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["from", "record"])]
    pack: Option<PathBuf>,
    /// Run what `--pack` has left in FOLDER; needs neither cargo nor the checkout
    #[arg(long, value_name = "FOLDER")]
    from: Option<PathBuf>,
    /// Seconds that one group may take
    #[arg(long, default_value_t = 600)]
    limit: u64,
    /// Groups of tests, each a file of the suite; all that touch a device by default
    names: Vec<String>,
    /// Parts of tests' names, and options of the test binaries in one word each
    #[arg(last = true)]
    args: Vec<String>,
}

impl Options {
    /// Whether the tests come from a folder; then there may be no checkout.
    pub(crate) fn is_packed(&self) -> bool {
        self.from.is_some()
    }

    /// The variables that tell the tests which adapters to use and to require.
    fn environment(&self) -> Vec<(&'static str, String)> {
        let mut required = if self.software {
            std::env::var("TILEWISE_REQUIRE").into_iter().collect()
        } else {
            vec!["hardware".to_owned()]
        };
        required.extend(self.require.iter().cloned());
        let mut variables = vec![("TILEWISE_REQUIRE", required.join(","))];
        if !self.software {
            variables.push(("TILEWISE_ONLY", "hardware".to_owned()));
        }
        if std::env::var_os(GL_DRIVERS).is_none() {
            variables.push((GL_DRIVERS, "/nonexistent".to_owned()));
        }
        variables
    }
}

/// The command: fails unless every test passed and at least one ran.
pub(crate) fn main(options: &Options) -> Result {
    let suite = match &options.from {
        Some(folder) => Suite::unpack(folder)?,
        None => Suite::build()?,
    };
    match &options.pack {
        Some(folder) => suite.pack(folder),
        None => suite.run(options),
    }
}

/// The test binaries of one commit.
struct Suite {
    commit: String,
    binaries: Vec<PathBuf>,
    program: PathBuf,
}

impl Suite {
    /// Builds the test binaries of the checkout.
    fn build() -> Result<Suite> {
        let mut build = cargo([
            "test",
            "--workspace",
            "--all-features",
            "--no-run",
            "--message-format",
            "json-render-diagnostics",
        ]);
        build.args(ON_DEVICE.iter().flat_map(|name| ["--test", name]));
        let messages = capture(&mut build)?;
        let artifacts = messages
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let ours = artifacts.filter(|message| {
            message["package_id"].as_str().is_some_and(|id| id.contains(PACKAGE))
        });
        let (mut binaries, mut program) = (Vec::new(), None);
        for message in ours {
            let Some(path) = message["executable"].as_str().map(PathBuf::from) else { continue };
            match message["target"]["kind"][0].as_str() {
                Some("test") => binaries.push(path),
                Some("bin") if message["target"]["name"] == PROGRAM.0 => program = Some(path),
                _ => {}
            }
        }
        binaries.sort();
        let program = program.ok_or_else(|| format!("{PACKAGE} has no program {}", PROGRAM.0))?;
        Ok(Suite { commit: commit(), binaries, program })
    }

    /// Copies everything into `folder`, without symbols. A folder that already holds tests is
    /// refused.
    fn pack(&self, folder: &Path) -> Result {
        let failed = |error| format!("cannot write to {}: {error}", folder.display());
        let tests = folder.join("tests");
        // `create_dir` fails if tests are there: those of an earlier pack would run as well.
        fs::create_dir_all(folder).and_then(|()| fs::create_dir(&tests)).map_err(failed)?;
        let own = std::env::current_exe().map_err(failed)?;
        let place = |path: &Path| tests.join(binary_name(path) + std::env::consts::EXE_SUFFIX);
        let mut copies: Vec<_> =
            self.binaries.iter().map(|path| (path.clone(), place(path))).collect();
        for program in [&own, &self.program] {
            copies.push((program.clone(), folder.join(program.file_name().unwrap_or_default())));
        }
        for (from, to) in &copies {
            fs::copy(from, to).map_err(failed)?;
        }
        fs::write(folder.join("commit"), &self.commit).map_err(failed)?;
        match find_program("strip") {
            Some(strip) => run(Command::new(strip).args(copies.iter().map(|(_, to)| to)))?,
            None => println!("no program `strip`: the copies keep their symbols"),
        }
        println!(
            "{} test binaries in {}; there: ./xtask suite --from . --record FILE",
            self.binaries.len(),
            folder.display()
        );
        Ok(())
    }

    /// Reads the suite that `pack` has left in `folder`.
    fn unpack(folder: &Path) -> Result<Suite> {
        let failed = |error| format!("{} holds no packed suite: {error}", folder.display());
        let folder = fs::canonicalize(folder).map_err(failed)?;
        let commit = fs::read_to_string(folder.join("commit")).map_err(failed)?;
        let binaries = list(&folder.join("tests"))?;
        let program = folder.join(PROGRAM.0).with_extension(std::env::consts::EXE_EXTENSION);
        Ok(Suite { commit, binaries, program })
    }

    /// Runs the groups one after the other, each as a process of its own, and records the outcome.
    fn run(&self, options: &Options) -> Result {
        let environment = options.environment();
        let limit = Duration::from_secs(options.limit);
        let flags: Vec<_> = options.args.iter().filter(|arg| arg.starts_with('-')).collect();
        let run = |binary: &Path, tests: &[String]| {
            let mut command = Command::new(binary);
            command.args(["--show-output", "--exact"]).args(&flags).args(tests);
            command.envs(environment.clone()).env(PROGRAM.1, &self.program);
            Outcome::of(&mut command, limit)
        };
        let groups = self.groups(options)?;
        let device = self.binaries.iter().find(|path| binary_name(path) == ON_DEVICE[0]);
        let (listing, output) =
            run(device.ok_or("the tests on devices are missing")?, &[LISTING.to_owned()])?;
        if !listing.is_ok() || listing.passed == 0 {
            return Err(format!("no adapter is what was asked for:\n{}", listing.shown(&output)));
        }
        let adapters = output
            .lines()
            .filter_map(|line| line.split_once("adapter: "))
            .map(|(_, adapter)| adapter.to_owned());
        let date = time::OffsetDateTime::now_utc().date().to_string();
        let mut record = Record {
            commit: self.commit.trim().to_owned(),
            date,
            filter: options.args.join(" "),
            adapters: adapters.collect(),
            outcomes: Vec::new(),
        };
        println!("{}", record.heading());
        for group in groups {
            let (outcome, output) = run(group.binary, &group.tests)?;
            println!("{:<16} {outcome}", group.name);
            if !outcome.is_ok() {
                println!("{}", outcome.shown(&output));
            }
            record.outcomes.push((group.name, outcome));
            if let Some(path) = &options.record {
                fs::write(path, record.to_string())
                    .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            }
        }
        println!("\n{record}");
        record.verdict()
    }

    /// The tests that `options` select.
    fn groups(&self, options: &Options) -> Result<Vec<Group<'_>>> {
        let mut groups = Vec::new();
        for binary in &self.binaries {
            let mut list = Command::new(binary);
            let listing = capture(list.args(["--list", "--format", "terse"]).args(&options.args))?;
            groups.extend(grouped(binary, &listing));
        }
        if let Some(name) =
            options.names.iter().find(|name| groups.iter().all(|group| group.name != **name))
        {
            return Err(format!("no group of tests that touch a device is called {name}"));
        }
        groups.retain(|group| options.names.is_empty() || options.names.contains(&group.name));
        groups.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(groups)
    }
}

/// Tests of one file.
struct Group<'a> {
    binary: &'a Path,
    name: String,
    tests: Vec<String>,
}

/// The tests that a binary lists, grouped by file: a module's, or the binary's own.
fn grouped<'a>(binary: &'a Path, listing: &str) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for test in listing.lines().filter_map(|line| line.strip_suffix(": test")) {
        let name = test
            .split_once("::")
            .map_or_else(|| binary_name(binary), |(module, _)| module.to_owned());
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.tests.push(test.to_owned()),
            None => groups.push(Group { binary, name, tests: vec![test.to_owned()] }),
        }
    }
    groups
}

/// The entries of a folder, in order.
fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)
        .map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// The name of a test binary: cargo appends a hash.
fn binary_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    stem.split('-').next().unwrap_or_default().to_owned()
}

/// A run of the suite, as text.
struct Record {
    commit: String,
    date: String,
    /// Arguments of the binaries.
    filter: String,
    adapters: Vec<String>,
    outcomes: Vec<(String, Outcome)>,
}

impl Record {
    /// An error unless every group is well and at least one test has run.
    fn verdict(&self) -> Result {
        let failed = self.outcomes.iter().filter(|(_, outcome)| !outcome.is_ok()).count();
        if failed > 0 {
            return Err(format!("{failed} groups failed"));
        }
        if self.outcomes.iter().all(|(_, outcome)| outcome.passed == 0) {
            return Err(format!("no test ran; arguments: {:?}", self.filter));
        }
        Ok(())
    }

    fn heading(&self) -> String {
        let Record { commit, date, filter, adapters, .. } = self;
        let filter = if filter.is_empty() { String::new() } else { format!(", only {filter}") };
        let adapters =
            if adapters.is_empty() { "no adapter".to_owned() } else { adapters.join("\n") };
        format!("cargo xtask suite, commit {commit}, {date}{filter}\n{adapters}\n")
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.heading())?;
        let mut total = Outcome::default();
        for (name, outcome) in &self.outcomes {
            writeln!(f, "{name:<16} {outcome}")?;
            total.passed += outcome.passed;
            total.failed += outcome.failed;
            total.time += outcome.time;
            total.skipped.extend(outcome.skipped.iter().cloned());
        }
        writeln!(f, "{:<16} {total}\n", "in all")?;
        for reason in &total.skipped {
            writeln!(f, "{reason}")?;
        }
        for (name, why) in LEFT_OUT {
            writeln!(f, "left out: {name}, which {why}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_binaries() {
        assert_eq!(binary_name(Path::new("/x/overheads-9db094e794bd1300")), "overheads");
        assert_eq!(binary_name(Path::new("tests/overheads")), "overheads");
    }

    #[test]
    fn tests_are_grouped_by_file() {
        let listing =
            "api::a: test\napi::deep::b: test\nlarge::c: test\nd: test\n\n4 tests, 0 benchmarks\n";
        let groups = grouped(Path::new("/x/device-9db094e794bd1300"), listing);
        let named: Vec<_> =
            groups.iter().map(|group| (group.name.as_str(), group.tests.join(" "))).collect();
        let expected = [("api", "api::a api::deep::b"), ("large", "large::c"), ("device", "d")];
        assert_eq!(named, expected.map(|(name, tests)| (name, tests.to_owned())));
    }

    #[test]
    fn nothing_run_is_a_failure() {
        let verdict = |outputs: &[&str]| {
            let outcomes =
                outputs.iter().map(|output| ("api".to_owned(), Outcome::read(output))).collect();
            Record {
                commit: String::new(),
                date: String::new(),
                filter: "nosuchtest".into(),
                adapters: Vec::new(),
                outcomes,
            }
            .verdict()
        };
        let none = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored";
        assert!(verdict(&[none, none]).unwrap_err().contains("nosuchtest"));
        assert_eq!(verdict(&[none, "test a ... ok", none]), Ok(()));
    }

    #[test]
    fn a_record_names_every_group() {
        let outcome = Outcome {
            passed: 2,
            trouble: Some("stopped after 5 s".into()),
            ..Outcome::read("skipped: f16 on B")
        };
        let record = Record {
            commit: "abc".into(),
            date: "2026-01-02".into(),
            filter: "f16".into(),
            adapters: vec!["B".into()],
            outcomes: vec![("api".into(), outcome)],
        };
        let text = record.to_string();
        for part in [
            "commit abc, 2026-01-02, only f16",
            "\nB\n",
            "api ",
            "2 passed",
            "stopped after 5 s",
            "\nskipped: f16 on B\n",
            "left out: host",
        ] {
            assert!(text.contains(part), "{part:?} is missing:\n{text}");
        }
    }
}
