//! The peers that are scripts: what they print without the library that they measure.

use crate::workbench::Workbench;
use std::path::Path;
use std::process::{Command, Output};
use tilewise_tests::program::text;

/// Runs the script for PyTorch; prints and returns nothing if there is no Python.
fn torch(bench: &Workbench, arguments: &[&str]) -> Option<Output> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/torch_bench.py");
    // A module of that name that cannot be imported, even if there is a real one.
    bench.write_text("torch.py", "raise ImportError('no torch here')");
    let mut command = Command::new("python3");
    command
        .arg(script)
        .args(arguments)
        .env("PYTHONPATH", bench.path(""))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command.output().inspect_err(|error| eprintln!("skipped: python3: {error}")).ok()
}

#[test]
fn torch_is_needed_only_to_measure() {
    let bench = Workbench::new();
    let Some(help) = torch(&bench, &["--help"]) else { return };
    assert!(
        help.status.success() && text(&help.stdout).contains("--commit"),
        "{}",
        text(&help.stderr)
    );
    for (shape, said) in [
        ("4x5", "MxNxK"),
        ("4x4x4:NT:tn", "'tn' is a second layout"),
        ("4x4x4:f8", "'f8' is neither"),
        ("4x4x4:f32-sums:f16-sums", "'f16-sums' is a second precision"),
        ("", "--shapes: no shape is named"),
        (" ,", "--shapes: no shape is named"),
    ] {
        let output = torch(&bench, &["--shapes", shape]).unwrap();
        let stderr = text(&output.stderr);
        assert!(
            !output.status.success() && stderr.contains(said) && stderr.lines().count() == 1,
            "{stderr}"
        );
    }
    let output = torch(&bench, &["--shapes", "4x4x4:NT:f16:x2"]).unwrap();
    assert!(
        !output.status.success() && text(&output.stderr).contains("no torch here"),
        "{}",
        text(&output.stderr)
    );
}
