//! A folder, the program, adapters and records, for the tests of the bench program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tilewise_benches::report::Report;

/// A folder of its own for a test, and the program run in it.
pub(crate) struct Workbench {
    folder: tempfile::TempDir,
}

impl Workbench {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        Workbench { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// Writes a report into the folder.
    pub(crate) fn write(&self, name: &str, report: &Report) {
        std::fs::write(self.folder.path().join(name), serde_json::to_string(report).unwrap()).unwrap();
    }

    /// Writes a file into the folder.
    pub(crate) fn write_text(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// A text file of the folder.
    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// A report in the folder.
    pub(crate) fn report(&self, name: &str) -> Report {
        Report::load(&self.folder.path().join(name)).unwrap()
    }

    /// Runs the program in the folder; `line` is split at spaces.
    pub(crate) fn run(&self, line: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_bench"))
            .args(line.split_whitespace())
            .current_dir(self.folder.path())
            .env_remove("TILEWISE_ADAPTER")
            .env_remove("RUST_LOG")
            // Compiled pipelines are kept beside the build, not in the folder of whoever runs the tests.
            .env("TILEWISE_CACHE_DIR", env!("CARGO_TARGET_TMPDIR"))
            .output()
            .expect("the program starts")
    }

    /// Runs the program and expects success; gives what it prints.
    pub(crate) fn succeed(&self, line: &str) -> String {
        let output = self.run(line);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "bench {line}\n{}\n{stdout}{stderr}", output.status);
        stdout
    }

    /// Runs the program and expects this exit status; gives what it says on stderr.
    pub(crate) fn fail(&self, status: i32, line: &str) -> String {
        let output = self.run(line);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "bench {line}\n{stderr}");
        stderr
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the program prints text")
}

/// A recorded report.
pub(crate) fn record(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("record").join(name)
}

/// The product library's record, and that of a peer.
pub(crate) fn records() -> [PathBuf; 2] {
    ["2026-11-20-h200-tilewise.json", "2026-11-20-h200-torch.json"].map(record)
}

/// Names of the software adapters. The absence of all is printed, and is a failure where `TILEWISE_REQUIRE` lists `vulkan`.
pub(crate) fn software() -> Vec<String> {
    let found = pollster::block_on(tilewise::adapters());
    let software = found.into_iter().filter(|adapter| adapter.backend != "gl" && !adapter.hardware);
    let names: Vec<String> = software.map(|adapter| adapter.name).collect();
    let required = std::env::var("TILEWISE_REQUIRE").unwrap_or_default();
    if names.is_empty() {
        assert!(
            !required.split(',').any(|word| word == "vulkan"),
            "TILEWISE_REQUIRE={required}, and no software adapter"
        );
        eprintln!("skipped on GPUs: no software adapter found");
    }
    names
}
