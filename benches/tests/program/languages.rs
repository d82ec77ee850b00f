//! `--languages`: WGSL and MSL side by side, as on Metal.

use crate::workbench::{Workbench, records, software};
use tilewise_benches::report::{Report, Row};
use tilewise_tests::program::text;

/// Vulkan compiles no MSL: there is a row for WGSL, and a reason for MSL.
#[test]
fn what_is_not_compiled_is_skipped_with_the_reason() {
    let bench = Workbench::new();
    for adapter in software() {
        let word = adapter.split_whitespace().next().unwrap();
        let table = bench.succeed(&format!(
            "--backend vulkan --adapter {word} --languages wgsl,msl --shapes 32x32x64,1x64x64:NT \
             --samples 1 --peak-tflops 1 --peak-gbs 1 --json report.json"
        ));
        let report = bench.report("report.json");
        assert_eq!((report.rows.len(), report.skipped.len()), (2, 2), "{table}");
        for (row, skipped) in report.rows.iter().zip(&report.skipped) {
            assert!(row.language == "WGSL" && !row.kernel.starts_with("msl-"), "{row:?}");
            assert_eq!(row.shape, skipped.shape);
            assert!(
                skipped.reason.starts_with("in MSL: ")
                    && skipped.reason.contains("the MSL of msl-"),
                "{skipped:?}"
            );
            assert!(table.contains(&format!("skipped {}: in MSL: ", skipped.shape)), "{table}");
        }
        // MSL alone leaves nothing to report.
        let said = bench.fail(
            1,
            &format!(
                "--backend vulkan --adapter {word} --languages msl --shapes 32x32x64 --samples 1 \
                 --peak-tflops 1 --peak-gbs 1 --quiet"
            ),
        );
        assert!(
            said.contains("skipped 32x32x64: in MSL: ") && said.contains("nothing was measured"),
            "{said}"
        );
    }
}

/// Makes a report as from a Mac: half of the rows are there again, faster and in MSL.
#[test]
fn both_are_shown_side_by_side() {
    let bench = Workbench::new();
    let [own, _] = records();
    let mut report = Report::load(&own).unwrap();
    for row in std::mem::take(&mut report.rows) {
        // Some shapes were measured with several kernels.
        if report.rows.iter().all(|other| other.key() != row.key()) {
            report.rows.push(Row { language: "WGSL".into(), ..row });
        }
    }
    let mut faster = report.rows[..report.rows.len() / 2].to_vec();
    for row in &mut faster {
        (row.ms, row.tflops, row.gbs) = (row.ms / 2.0, row.tflops * 2.0, row.gbs * 2.0);
        (row.kernel, row.language) = ("msl-gemm/64x64x16".into(), "MSL".into());
    }
    let shapes = report.rows.len();
    report.rows.extend(faster.iter().cloned());
    bench.write("both.json", &report);
    let line = "--from both.json --html page.html --svg pictures --json copy.json";
    let table = bench.succeed(line);
    let rows: Vec<&str> =
        table.lines().filter(|line| line.starts_with("| ") && line.contains('/')).collect();
    let (msl, wgsl): (Vec<&str>, Vec<&str>) =
        rows.iter().partition(|line| line.contains("msl-gemm/64x64x16"));
    assert_eq!(msl.len(), faster.len(), "{table}");
    assert!(
        table.contains("WGSL kernels: ms") && msl.iter().all(|line| line.contains("2.00×")),
        "{table}"
    );
    assert!(
        wgsl.len() >= shapes - faster.len() && wgsl.iter().all(|line| !line.contains("2.00×")),
        "{table}"
    );
    // The file has all rows.
    assert_eq!(bench.report("copy.json").rows.len(), report.rows.len());
    assert!(bench.text("page.html").contains("WGSL kernels"));
    // The roofline has points of both languages: filled and hollow.
    let roofline = bench.text("pictures/roofline-light.svg");
    assert!(
        roofline.contains("WGSL kernels")
            && roofline.matches("fill=\"none\"").count() >= faster.len(),
        "{roofline}"
    );
    // An earlier run is compared with the faster of the two languages.
    bench.succeed(&format!("--from both.json --quiet --compare {}", own.display()));
}

#[test]
fn a_missing_adapter_can_be_no_failure() {
    let bench = Workbench::new();
    let output = bench
        .run("--backend metal --adapter nobody --skip-missing --shapes 4x4x4 --json report.json");
    let said = text(&output.stderr);
    assert!(
        output.status.success()
            && said.contains("skipped everything: ")
            && said.contains("metal:nobody"),
        "{said}"
    );
    assert!(!bench.path("report.json").exists());
    // Other errors remain errors.
    assert!(
        bench
            .fail(1, "--adapter cpu --skip-missing --shapes 4x4x4 --kernel bogus")
            .contains("bogus")
    );
    assert!(bench.fail(2, "--languages hlsl").contains("hlsl"));
    assert!(bench.fail(2, "--languages msl --kernel simt").contains("--kernel"));
}
