//! What is measured: small shapes on every software adapter and on the CPU executor.

use crate::workbench::{Workbench, software};

/// `--adapter` takes part of a name; names with spaces do not survive the splitting of a line.
fn first_word(name: &str) -> &str {
    name.split_whitespace().next().unwrap_or(name)
}

/// Equal but for the last digits, which JSON may lose.
fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * other.abs()
}

#[test]
fn every_adapter_measures_the_small_shapes() {
    let bench = Workbench::new();
    for adapter in software().iter().map(|name| first_word(name)).chain(["cpu"]) {
        let table = bench
            .succeed(&format!("--adapter {adapter} --samples 2 --json report.json --html page.html --svg pictures"));
        let report = bench.report("report.json");
        assert!(report.skipped.is_empty(), "{:?}", report.skipped);
        assert!(report.rows.len() >= 8);
        for row in &report.rows {
            assert!(table.contains(&row.shape), "no {} in\n{table}", row.shape);
            assert!(row.ms > 0.0 && row.tflops > 0.0 && row.regret.is_none(), "{row:?}");
            assert_eq!(row.group, "tiny");
            assert_eq!(row.roofline > 0.0, adapter != "cpu", "{row:?}");
        }
        let batched = report.rows.iter().find(|row| row.batch > 1).expect("a batched shape");
        assert!(
            (batched.intensity() - 2.0 * 64.0 * 64.0 * 32.0 / (4.0 * (2.0 * 64.0 * 32.0 + 64.0 * 64.0))).abs() < 1e-6
        );
        assert!(bench.text("page.html").contains(&report.adapter));
        assert!(bench.text("pictures/roofline-dark.svg").contains("</svg>"));
    }
}

#[test]
fn ceilings_are_given_and_regret_is_reported() {
    let bench = Workbench::new();
    let Some(adapter) = software().into_iter().next() else { return };
    let line = format!(
        "--backend vulkan --adapter {} --shapes 32x32x64,4x32x64:NT:f16:x2 --samples 1 --choices --quiet --peak-tflops 2 --peak-tflops-f16 4 --peak-gbs 50 --json report.json",
        first_word(&adapter)
    );
    assert_eq!(bench.succeed(&line), "");
    let report = bench.report("report.json");
    assert_eq!((report.ceiling.peak("f32"), report.ceiling.peak("f16"), report.ceiling.peak_gbs), (2.0, 4.0, 50.0));
    for row in &report.rows {
        assert!(!row.choices.is_empty());
        let best = row.choices.iter().map(|choice| choice.ms).fold(row.ms, f64::min);
        assert!(near(row.regret.unwrap(), row.ms / best - 1.0), "{row:?}");
        assert!(near(row.roofline, (row.tflops / report.ceiling.peak(&row.dtype)).max(row.gbs / 50.0)), "{row:?}");
    }
    assert!(report.near_best.is_some());
}

#[test]
fn what_does_not_fit_is_skipped_with_the_reason() {
    let bench = Workbench::new();
    let Some(adapter) = software().into_iter().next() else { return };
    let adapter = first_word(&adapter);
    let table = bench.succeed(&format!(
        "--adapter {adapter} --shapes 262144x262144x1,8x8x8 --samples 1 --peak-tflops 1 --peak-gbs 1 --json report.json"
    ));
    let report = bench.report("report.json");
    assert_eq!((report.rows.len(), report.skipped.len()), (1, 1));
    assert_eq!(report.skipped[0].shape, "262144x262144x1");
    assert!(table.contains("skipped 262144x262144x1: too large"), "{table}");
}

#[test]
fn bad_arguments_are_named() {
    let bench = Workbench::new();
    for (status, line, word) in [
        (1, "--adapter cpu --shapes 4x5", "4x5"),
        (1, "--adapter cpu --shapes cubes", "square"),
        (1, "--adapter cpu --shapes 4x4x4 --json report.json/inside.json --compare absent.json", "absent.json"),
        (1, "--adapter nobody --shapes 4x4x4", "nobody"),
        (1, "--backend metal --adapter nobody --shapes 4x4x4", "metal:nobody"),
        (2, "--peak-gbs -1", "-1"),
        (2, "--peak-tflops inf", "inf"),
        (2, "--regression nan", "nan"),
        (2, "--samples 0", "0"),
        (2, "--backend quartz", "quartz"),
        (2, "--quick --shapes square", "--quick"),
    ] {
        let said = bench.fail(status, line);
        assert!(said.contains(word), "bench {line}\n{said}");
    }
}
