//! Tells which adapters the suite runs on. `cargo xtask suite` records the lines that begin with
//! `adapter: `.

use std::process::Command;
use tilewise_tests::adapters;
use tilewise_tests::adapters::{Adapter, open};

#[test]
fn listed() {
    for adapter in adapters() {
        println!("adapter: {adapter}");
    }
}

/// Adapters are found by name, by backend, and by both.
#[test]
fn found_by_name() {
    for adapter in adapters() {
        let backend = adapter.context.backend_name();
        let found =
            open(&format!("{}:{}", backend.to_uppercase(), adapter.name())).expect("it is there");
        assert_eq!((found.adapter_name(), found.backend_name()), (adapter.name(), backend));
        assert_eq!(open(backend).expect("it is there").backend_name(), backend);
        for other in
            [format!("no{backend}:{}", adapter.name()), format!("{backend}:no such adapter")]
        {
            assert!(open(&other).is_err_and(|error| error.to_string().contains(&other)));
        }
    }
}

/// A process that is told to use some adapters lists only those. A process fails if it requires an
/// adapter that is not among them.
#[test]
fn only_what_was_asked_for() {
    let all = lines_of("", "").expect("nothing is required");
    // OpenGL's adapters are left out if there are others.
    let shown = |adapter: &Adapter| {
        adapter.context.backend_name() == "gl" || all.contains(&adapter.to_string())
    };
    assert!(adapters().iter().all(shown), "{all:?}");
    for word in ["hardware", "f16", "coop", "vulkan", "dx12", "gl", "lavapipe", "swiftshader"] {
        let some = lines_of(word, "").expect("nothing is required");
        let asked = |line: &String| match word {
            "gl" => line.contains(" through gl,"),
            _ => all.contains(line),
        };
        assert!(some.iter().all(asked), "{word}: {some:?}");
        assert_eq!(lines_of(word, word).is_some(), !some.is_empty(), "{word}: {some:?}");
    }
    let software = lines_of("lavapipe", "").expect("nothing is required");
    assert!(
        software.iter().all(|line| line.contains("llvmpipe") && !line.contains("hardware")),
        "{software:?}"
    );
    assert_eq!(lines_of("", "nonsense"), None);
}

/// The lines that `listed` prints in a process of its own; `None` if it fails.
fn lines_of(only: &str, require: &str) -> Option<Vec<String>> {
    let own = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(own);
    command
        .args(["adapters::listed", "--exact", "--nocapture"])
        .env("TILEWISE_ONLY", only)
        .env("TILEWISE_REQUIRE", require);
    let output = command.output().expect("this program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text
        .lines()
        .filter_map(|line| line.split_once("adapter: "))
        .map(|(_, line)| line.to_owned())
        .collect();
    output.status.success().then_some(lines)
}
