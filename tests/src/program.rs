//! Runs a program of the workspace from outside, in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A program, and an empty folder in which it runs.
pub struct Program {
    executable: &'static str,
    kept: &'static str,
    folder: tempfile::TempDir,
}

impl Program {
    /// The program at a path, such as `env!("CARGO_BIN_EXE_tilewise")`. Compiled pipelines are kept
    /// in the folder `kept`, such as `env!("CARGO_TARGET_TMPDIR")`, and not in the user's own
    /// folder.
    pub fn new(executable: &'static str, kept: &'static str) -> Self {
        Program { executable, kept, folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// A file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program with arguments, which are `line` split at spaces. Its environment says nothing
    /// about adapters and logs.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(self.executable);
        command
            .args(line.split_whitespace())
            .current_dir(self.folder.path())
            .env("TILEWISE_CACHE_DIR", self.kept);
        command.env_remove("TILEWISE_ADAPTER").env_remove("RUST_LOG");
        command
    }

    /// Runs the program.
    pub fn run(&self, line: &str) -> Output {
        self.command(line).output().expect("the program starts")
    }

    /// Runs the program and expects success. Returns what it prints.
    pub fn succeed(&self, line: &str) -> String {
        let output = self.run(line);
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
        assert!(
            output.status.success(),
            "{} {line}\n{}\n{stdout}{stderr}",
            self.name(),
            output.status
        );
        stdout
    }

    /// Runs the program and expects this exit status. Returns what it prints on stderr.
    pub fn fail(&self, status: i32, line: &str) -> String {
        let output = self.run(line);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{} {line}\n{stderr}", self.name());
        stderr
    }

    fn name(&self) -> String {
        Path::new(self.executable).file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// The text that a program prints.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the program prints text")
}
