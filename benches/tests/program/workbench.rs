//! A folder, the program, adapters and records, for the tests of the bench program.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use tilewise_benches::report::Report;
use tilewise_tests::Program;

/// A folder of its own for a test, and the program run in it.
pub(crate) struct Workbench {
    program: Program,
}

impl Workbench {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        Workbench {
            program: Program::new(env!("CARGO_BIN_EXE_bench"), env!("CARGO_TARGET_TMPDIR")),
        }
    }

    /// Writes a report into the folder.
    pub(crate) fn write(&self, name: &str, report: &Report) {
        std::fs::write(self.path(name), serde_json::to_string(report).unwrap()).unwrap();
    }

    /// Writes a file into the folder.
    pub(crate) fn write_text(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// A text file of the folder.
    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// A report in the folder.
    pub(crate) fn report(&self, name: &str) -> Report {
        Report::load(&self.path(name)).unwrap()
    }
}

impl Deref for Workbench {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.program
    }
}

/// A recorded report.
pub(crate) fn record(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("record").join(name)
}

/// The product library's record, and that of a peer.
pub(crate) fn records() -> [PathBuf; 2] {
    ["2026-11-25-h200-tilewise.json", "2026-11-25-h200-torch.json"].map(record)
}

/// Names of the software adapters. If there are none, that is printed; it is a failure if
/// `TILEWISE_REQUIRE` lists `vulkan`.
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
