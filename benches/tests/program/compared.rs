//! `--compare`: regressions, peers, and files that are no reports.

use crate::workbench::{Workbench, records};
use tilewise_benches::report::Report;

#[test]
fn a_slower_shape_fails_the_comparison_with_an_earlier_run() {
    let bench = Workbench::new();
    let [own, peer] = records();
    let before = Report::load(&own).unwrap();
    let mut now = before.clone();
    let slow = now.rows.iter_mut().find(|row| row.shape == "2048x2048x2048").unwrap();
    slow.ms *= 1.2;
    bench.write("now.json", &now);
    let line = format!("--from now.json --quiet --compare {}", own.display());
    let said = bench.fail(1, &line);
    let regressions: Vec<&str> =
        said.lines().filter(|line| line.starts_with("regression: ")).collect();
    assert!(
        regressions.len() == 1
            && regressions[0].contains("2048x2048x2048")
            && regressions[0].contains("+20.0%"),
        "{said}"
    );
    bench.succeed(&format!("{line} --regression 21"));
    // A peer that is faster is no regression.
    bench.succeed(&format!("--from now.json --quiet --regression 0 --compare {}", peer.display()));
    // The later of two comparisons counts too.
    bench.fail(
        1,
        &format!(
            "--from now.json --quiet --compare {} --compare {}",
            peer.display(),
            own.display()
        ),
    );
}

#[test]
fn an_earlier_run_without_a_common_shape_fails_the_comparison() {
    let bench = Workbench::new();
    let [own, peer] = records();
    for (path, status) in [(own, 1), (peer, 0)] {
        let mut other = Report::load(&path).unwrap();
        let mut now = Report { rows: other.rows.clone(), ..Report::load(&records()[0]).unwrap() };
        other.rows.truncate(1);
        now.rows.retain(|row| row.key() != other.rows[0].key());
        bench.write("now.json", &now);
        bench.write("other.json", &other);
        let output = bench.run("--from now.json --quiet --compare other.json");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert_eq!(said.contains("has none of these shapes"), status == 1, "{said}");
    }
}

#[test]
fn another_precision_is_said() {
    let bench = Workbench::new();
    let mut now = Report::load(&records()[0]).unwrap();
    now.rows.retain(|row| row.shape == "4096x4096x4096");
    bench.write("strict.json", &now);
    now.rows[0].precision = "split-f32".into();
    bench.write("split.json", &now);
    let said = bench.fail(1, "--from split.json --quiet --compare strict.json");
    assert!(said.contains("in the precision alone: split-f32 here, f32 there"), "{said}");
    let same = bench.run("--from split.json --quiet --compare split.json");
    assert!(!String::from_utf8_lossy(&same.stderr).contains("precision"));
}

#[test]
fn shapes_are_listed_without_a_device() {
    let bench = Workbench::new();
    let listed = bench.succeed("--list-shapes --shapes split,4096x4096x4096:split-f32,8x8x8");
    assert_eq!(listed.lines().count(), 8 + 1, "{listed}");
    assert!(listed.starts_with("4096x4096x4096:split-f32\n") && listed.ends_with("\n8x8x8\n"));
    assert!(bench.succeed("--list-shapes").lines().count() > 150);
    assert!(bench.fail(1, "--list-shapes --shapes squares").contains("squares"));
}

#[test]
fn a_report_without_rows_is_a_failure() {
    let bench = Workbench::new();
    let [own, _] = records();
    bench.write("empty.json", &Report { rows: Vec::new(), ..Report::load(&own).unwrap() });
    assert!(bench.fail(1, "--from empty.json --quiet").contains("nothing was measured"));
}

#[test]
fn another_machine_is_mentioned() {
    let bench = Workbench::new();
    let [own, _] = records();
    let mut elsewhere = Report::load(&own).unwrap();
    elsewhere.adapter = "Apple M1".into();
    bench.write("elsewhere.json", &elsewhere);
    let output = bench.run(&format!("--from {} --quiet --compare elsewhere.json", own.display()));
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("was measured on Apple M1"));
}

#[test]
fn files_that_are_no_reports_are_named_with_the_reason() {
    let bench = Workbench::new();
    let [own, _] = records();
    let mut report = Report::load(&own).unwrap();
    report.rows[3].ms = 0.0;
    bench.write("zero.json", &report);
    bench.write_text("text.json", "no JSON");
    bench.write_text("other.json", "{\"library\": \"x\"}");
    for (file, reason) in [
        ("absent.json", "No such file"),
        ("zero.json", "above 0"),
        ("text.json", "line 1"),
        ("other.json", "missing field"),
    ] {
        for line in [format!("--from {file}"), format!("--from {} --compare {file}", own.display())]
        {
            let said = bench.fail(1, &line);
            assert!(said.contains(file) && said.lines().count() == 1, "{said}");
            assert!(said.contains(reason) || file == "absent.json", "{said}");
        }
    }
}
