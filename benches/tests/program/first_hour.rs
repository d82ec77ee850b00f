//! `--first-hour`, on software adapters: the file has both parts, and says why nothing is compiled.

use crate::workbench::{Workbench, software};
use tilewise_benches::first_hour::Hour;
use tilewise_tests::program::text;

/// Lavapipe is the one adapter here that is quick.
#[test]
fn the_file_has_both_parts() {
    let bench = Workbench::new();
    if !software().iter().any(|name| name.contains("llvmpipe")) {
        return;
    }
    let line = "--first-hour --adapter llvmpipe --quiet --samples 1 --commit 1a2b3c4";
    let output = bench.command(line).output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains("target/bench/first-hour.json"), "{said}");
    let hour: Hour = serde_json::from_str(&bench.text("target/bench/first-hour.json")).unwrap();
    assert_eq!((hour.system[0].as_str(), hour.metal_language), ("linux", None));
    assert!(hour.texts.len() > 1, "{hour:?}");
    for texts in &hour.texts {
        assert!(texts.reason.contains("Apple's compiler") && texts.asked == 0, "{texts:?}");
    }
    let report = hour.report.unwrap();
    assert!(report.adapter.contains("llvmpipe") && report.commit == "1a2b3c4", "{report:?}");
    assert!(!report.rows.is_empty() && report.rows.iter().all(|row| row.ms > 0.0), "{report:?}");
}

#[test]
fn the_first_hour_takes_no_shapes() {
    let bench = Workbench::new();
    for other in [
        "--shapes tiny",
        "--kernel simt",
        "--quick",
        "--choices",
        "--languages wgsl",
        "--peak-gbs 1",
    ] {
        let said = bench.fail(2, &format!("--first-hour {other}"));
        assert!(said.contains("--first-hour") && said.contains("cannot be used with"), "{said}");
    }
}
