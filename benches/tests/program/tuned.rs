//! The tuning program: what it times, and where it keeps that.

use crate::workbench::software;
use tilewise_tests::{Program, program::text};

fn tune() -> Program {
    Program::new(env!("CARGO_BIN_EXE_tune"), env!("CARGO_TARGET_TMPDIR"))
}

#[test]
fn winners_are_kept() {
    let tune = tune();
    let Some(adapter) = software().into_iter().next() else { return };
    let run = |variables: &[(&str, &str)]| {
        let mut command = tune.command("16x24x32:NT:f16:x3");
        command.args(["--adapter", &format!("vulkan:{adapter}")]).env("TILEWISE_CACHE_DIR", tune.path("cache"));
        let output = command.envs(variables.iter().copied()).output().expect("the program starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let files = || std::fs::read_dir(tune.path("cache")).map_or(0, |files| files.count());
    let printed = run(&[("TILEWISE_NO_TUNED", "1")]);
    assert!(printed.contains("not kept: TILEWISE_NO_TUNED") && !printed.contains("kept in"), "{printed}");
    let before = files();
    let printed = run(&[]);
    assert!(printed.contains("class   f16/8 f16/8 f16/8 NT 16x24x32 batch 3"), "{printed}");
    assert!(printed.contains("kept in") && !printed.contains("not kept") && files() > before, "{printed}");
}

#[test]
fn there_must_be_something_to_choose_from() {
    let said = tune().fail(1, "4x4x4 --adapter cpu");
    assert!(said.contains("--adapter"), "{said}");
    assert!(tune().fail(1, "4x4 --adapter cpu").contains("4x4"));
}
