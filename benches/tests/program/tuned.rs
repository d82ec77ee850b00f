//! The tuning program: which kernels it times, and where it keeps the winners.

use crate::workbench::software;
use std::io::BufRead;
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
        command
            .args(["--adapter", &format!("vulkan:{adapter}")])
            .env("TILEWISE_CACHE_DIR", tune.path("cache"));
        let output = command.envs(variables.iter().copied()).output().expect("the program starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let files = || std::fs::read_dir(tune.path("cache")).map_or(0, |files| files.count());
    let printed = run(&[("TILEWISE_TUNED", "off")]);
    assert!(
        printed.contains("not kept: there is no folder")
            && printed.contains("TILEWISE_TUNED")
            && !printed.contains("kept in"),
        "{printed}"
    );
    let before = files();
    let printed = run(&[]);
    assert!(printed.contains("class   f16/8 f16/8 f16/8 NT 16x24x32 batch 3"), "{printed}");
    assert!(
        printed.contains("kept in") && !printed.contains("not kept") && files() > before,
        "{printed}"
    );
}

#[test]
fn what_is_not_kept_is_said_with_the_reason() {
    let tune = tune();
    let Some(adapter) = software().into_iter().next() else { return };
    std::fs::write(tune.path("file"), "").unwrap();
    let mut command = tune.command("16x24x32");
    command
        .args(["--adapter", &format!("vulkan:{adapter}")])
        .env("TILEWISE_CACHE_DIR", tune.path("file"));
    let output = command.output().expect("the program starts");
    let printed = text(&output.stdout);
    let (_, reason) = printed.split_once("not kept: ").expect("a reason");
    assert!(reason.contains("was not written") && reason.contains("file"), "{printed}");
    assert!(!printed.contains("TILEWISE_TUNED") && !printed.contains("kept in"), "{printed}");
}

#[test]
fn software_adapters_get_small_shapes() {
    let tune = tune();
    let Some(adapter) = software().into_iter().next() else { return };
    let mut child = tune
        .command("")
        .args(["--adapter", &format!("vulkan:{adapter}")])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The first line of results is enough.
    let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.map_while(Result::ok).filter(|line| !line.is_empty()).nth(1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(first.as_deref(), Some("64x64x64"));
}

#[test]
fn there_must_be_something_to_choose_from() {
    let said = tune().fail(1, "4x4x4 --adapter cpu");
    assert!(said.contains("--adapter"), "{said}");
    // Errors in shapes come before errors of devices.
    assert!(tune().fail(1, "4x4 --adapter nobody").contains("4x4"));
}
