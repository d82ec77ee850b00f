//! Measurements: small shapes on every software adapter and on the CPU executor.

use crate::workbench::{Workbench, software};
use tilewise_tests::program::text;

/// `--adapter` takes part of a name; names with spaces do not survive the splitting of a line.
fn first_word(name: &str) -> &str {
    name.split_whitespace().next().unwrap_or(name)
}

/// Whether two numbers are equal except for the last digits, which JSON may lose.
fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * other.abs()
}

#[test]
fn every_adapter_measures_the_small_shapes() {
    let bench = Workbench::new();
    for adapter in software().iter().map(|name| first_word(name)).chain(["cpu"]) {
        let table = bench.succeed(&format!(
            "--adapter {adapter} --samples 2 --json report.json --html page.html --svg pictures"
        ));
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
            (batched.intensity()
                - 2.0 * 64.0 * 64.0 * 32.0 / (4.0 * (2.0 * 64.0 * 32.0 + 64.0 * 64.0)))
                .abs()
                < 1e-6
        );
        assert!(bench.text("page.html").contains(&report.adapter));
        assert!(bench.text("pictures/roofline-dark.svg").contains("</svg>"));
    }
}

/// Every form of groups, rows by index and gates. A wrong product would be skipped.
#[test]
fn groups_have_every_form() {
    let bench = Workbench::new();
    let forms = [
        ("30x40x32:NN:f16", "e3", ""),
        ("30x40x32:NT:f32", "zipf3", "gathered:gated"),
        ("30x40x32:NT:f16:q8_0", "e3", "gathered"),
        ("30x40x32:NN:f16", "", "gathered"),
        ("30x40x32:NT:f16:q8_0", "indexed3", "gated"),
        ("30x40x32:NN:f16", "masked3-7", "gated"),
        ("30x40x70:TN:f16", "ragged-k3", ""),
        ("32x40x16:TT:f32", "list4", ""),
    ];
    let named = |(shape, form, extras): &(&str, &str, &str)| {
        [*shape, form, extras]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(":")
    };
    let shapes: Vec<String> = forms.iter().map(named).collect();
    for adapter in software().iter().map(|name| first_word(name)).chain(["cpu"]) {
        bench.succeed(&format!(
            "--adapter {adapter} --samples 1 --quiet --peak-tflops 1 --peak-gbs 1 --json \
             report.json --shapes {}",
            shapes.join(",")
        ));
        let report = bench.report("report.json");
        assert!(report.skipped.is_empty(), "{adapter}: {:?}", report.skipped);
        let measured = report.rows.iter().map(|row| (&*row.shape, &*row.experts, &*row.extras));
        let expected = shapes.iter().zip(&forms).map(|(shape, form)| (&**shape, form.1, form.2));
        assert!(measured.eq(expected), "{adapter}: {:?}", report.rows);
    }
}

#[test]
fn weights_may_be_quantized() {
    let bench = Workbench::new();
    let formats = ["affine-4bit-g64-f16", "mxfp4"];
    let shapes = formats.map(|format| format!("3x40x128:NT:f16:{format}")).join(",");
    for adapter in software().iter().map(|name| first_word(name)).chain(["cpu"]) {
        bench.succeed(&format!(
            "--adapter {adapter} --samples 1 --quiet --peak-tflops 1 --peak-gbs 1 --json \
             report.json --shapes {shapes}"
        ));
        let report = bench.report("report.json");
        let measured: Vec<&str> = report.rows.iter().map(|row| row.weights.as_str()).collect();
        assert_eq!(measured, formats, "{adapter}: {:?}", report.skipped);
    }
    let said = bench.fail(1, "--adapter cpu --shapes 3x40x128:NT:f16:affine");
    assert!(said.contains("\"affine\"") && said.contains("affine-4bit-g64-f16, "), "{said}");
}

#[test]
fn ceilings_are_given_and_regret_is_reported() {
    let bench = Workbench::new();
    let Some(adapter) = software().into_iter().next() else { return };
    let line = format!(
        "--backend vulkan --adapter {} --shapes 32x32x64,4x32x64:NT:f16:x2 --samples 1 --choices \
         --quiet --peak-tflops 2 --peak-tflops-f16 4 --peak-gbs 50 --json report.json",
        first_word(&adapter)
    );
    assert_eq!(bench.succeed(&line), "");
    let report = bench.report("report.json");
    assert_eq!(
        (report.ceiling.peak("f32"), report.ceiling.peak("f16"), report.ceiling.peak_gbs),
        (2.0, 4.0, 50.0)
    );
    for row in &report.rows {
        assert!(!row.choices.is_empty());
        let best = row.choices.iter().map(|choice| choice.ms).fold(row.ms, f64::min);
        assert!(near(row.regret.unwrap(), row.ms / best - 1.0), "{row:?}");
        assert!(
            near(row.roofline, (row.tflops / report.ceiling.peak(&row.dtype)).max(row.gbs / 50.0)),
            "{row:?}"
        );
    }
    assert!(report.near_best.is_some());
}

#[test]
fn what_does_not_fit_is_skipped_with_the_reason() {
    let bench = Workbench::new();
    let Some(adapter) = software().into_iter().next() else { return };
    let adapter = first_word(&adapter);
    let table = bench.succeed(&format!(
        "--adapter {adapter} --shapes 262144x262144x1,8x8x8 --samples 1 --peak-tflops 1 --peak-gbs \
         1 --json report.json"
    ));
    let report = bench.report("report.json");
    assert_eq!((report.rows.len(), report.skipped.len()), (1, 1));
    assert_eq!(report.skipped[0].shape, "262144x262144x1");
    assert!(table.contains("skipped 262144x262144x1: too large"), "{table}");
}

#[test]
fn nothing_measured_is_a_failure() {
    let bench = Workbench::new();
    for kernel in ["bogus", "simt/1x2x3", "simt+k0"] {
        let said = bench
            .fail(1, &format!("--adapter cpu --shapes 4x4x4,5x5x5 --samples 1 --kernel {kernel}"));
        assert!(said.contains(kernel) && said.lines().count() == 1, "{said}");
    }
    let output = bench
        .command("--adapter cpu --samples 1")
        .env("TILEWISE_KERNEL", "bogus")
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert!(
        output.status.code() == Some(1)
            && said.contains("TILEWISE_KERNEL")
            && said.contains("bogus"),
        "{said}"
    );
    // One shape that does not fit is skipped, which is printed once. If there is no other shape,
    // there is no report.
    for (quiet, shapes) in [("", "4x4x4,"), ("--quiet", "4x4x4,"), ("", ""), ("--quiet", "")] {
        let output = bench.run(&format!(
            "--adapter cpu --samples 1 {quiet} --shapes {shapes}1000000x1000000x1000000"
        ));
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(said.matches("skipped 1000000x1000000x1000000: ").count(), 1, "{said}");
        assert!(said.contains("out of memory: 4000000000000 bytes"), "{said}");
        assert_eq!(output.status.code(), Some(i32::from(shapes.is_empty())), "{said}");
        assert_eq!(said.contains("bench: nothing was measured"), shapes.is_empty(), "{said}");
    }
}

/// An operand has less than a hundredth of the output's bytes.
#[cfg(target_os = "linux")]
#[test]
fn outputs_for_which_there_is_no_memory_are_skipped() {
    let line = "--quiet --adapter cpu --samples 1 --shapes 20000x20000x1:f16";
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 560000 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_bench")])
        .args(line.split_whitespace())
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("out of memory: 800000000 bytes"), "{said}");
}

#[test]
fn edges_of_their_own_are_named() {
    // Software devices compile a kernel for edges only if a product is large.
    let bench = Workbench::new();
    let Some(adapter) = software().into_iter().find(|name| name.contains("llvmpipe")) else {
        return;
    };
    let adapter = first_word(&adapter);
    let table = bench.succeed(&format!(
        "--adapter {adapter} --shapes 129x129x65536,128x128x128 --samples 1 --peak-tflops 1 \
         --peak-gbs 1 --json report.json"
    ));
    let report = bench.report("report.json");
    let [edged, whole] = &report.rows[..] else { panic!("{:?}", report.rows) };
    assert!(!edged.edges.is_empty() && whole.edges.is_empty(), "{edged:?} {whole:?}");
    assert!(table.contains(&format!("{} and edges |", edged.kernel)), "{table}");
    assert_eq!(table.matches("and edges").count(), 1, "{table}");
}

#[test]
fn bad_arguments_are_named() {
    let bench = Workbench::new();
    // Errors in shapes come before errors of devices.
    assert!(
        bench
            .fail(1, "--adapter nobody --shapes 4x4x4:NT:NT")
            .contains("\"NT\" is a second layout")
    );
    for (status, line, word) in [
        (1, "--adapter cpu --shapes 4x5", "4x5"),
        (1, "--adapter cpu --shapes cubes", "square"),
        (
            1,
            "--adapter cpu --shapes 4x4x4 --json report.json/inside.json --compare absent.json",
            "absent.json",
        ),
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
