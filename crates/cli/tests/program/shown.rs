//! Commands that only show something: `tilewise info`, `tilewise plan`, `tilewise demo`.

use crate::bench::{Bench, adapters};
use tilewise_tests::program::text;

#[test]
fn info_lists_the_cpu_executor_and_every_adapter() {
    let bench = Bench::new();
    let info: serde_json::Value = serde_json::from_str(&bench.succeed("info --json")).unwrap();
    let list = info["adapters"].as_array().unwrap();
    assert!(list.iter().any(|adapter| adapter["backend"] == "cpu"), "{info}");
    for adapter in list {
        for key in ["name", "backend", "driver", "caps", "kernels"] {
            assert!(!adapter[key].is_null(), "no {key} in {adapter}");
        }
        let kernels = adapter["kernels"].as_array().unwrap();
        assert!(!kernels.is_empty(), "{adapter}");
        let in_msl =
            kernels.iter().any(|kernel| kernel["name"].as_str().unwrap().starts_with("msl-"));
        assert_eq!(adapter["msl"], in_msl, "{adapter}");
        assert!(!in_msl || adapter["backend"] == "metal", "{adapter}");
    }
    let text = bench.succeed("info");
    for adapter in list {
        assert!(text.contains(adapter["name"].as_str().unwrap()), "{text}");
    }
}

#[test]
fn plans_name_a_kernel_and_the_reasons_against_the_others() {
    let bench = Bench::new();
    for caps in ["apple-m1", "apple-m4-max", "nvidia-h200", "lavapipe", "swiftshader", "browser"] {
        for flags in ["", "--dtype f16 --transpose NT", "--dtype bf16 --transpose TT"] {
            let plan = bench.succeed(&format!("plan 512 384 1536 --caps {caps} {flags}"));
            assert!(plan.contains("naive"), "{plan}");
            assert!(plan.lines().count() > 2, "{plan}");
        }
    }
    let (small, large) = (
        bench.succeed("plan 1 8192 8192 --caps nvidia-h200"),
        bench.succeed("plan 4096 4096 4096 --caps nvidia-h200"),
    );
    assert_ne!(small, large);
    let half = |flags: &str| {
        bench.succeed(&format!("plan 4096 4096 4096 --dtype f16 --caps nvidia-h200 {flags}"))
    };
    let (strict, permitted) = (half(""), half("--precision f16-sums"));
    assert!(
        !strict.contains("  precision ") && permitted.contains("  precision f16-sums"),
        "{permitted}"
    );
    let chosen =
        |plan: &str| plan.lines().find(|line| line.starts_with("chosen")).map(str::to_owned);
    assert_ne!(chosen(&strict), chosen(&permitted));
    let single =
        |flags: &str| bench.succeed(&format!("plan 4096 4096 4096 --caps nvidia-h200 {flags}"));
    let split = single("--precision split-f32");
    assert!(chosen(&single("")).is_some_and(|line| line.contains("simt/")), "{split}");
    assert!(chosen(&split).is_some_and(|line| line.contains("coop/chains-")), "{split}");
    let weights = bench.succeed("plan 512 4096 4096 --dtype f16 --format q4_0 --caps nvidia-h200");
    assert!(
        weights.contains("q4_0") && chosen(&weights).is_some_and(|line| line.contains("coop/")),
        "{weights}"
    );
    assert!(bench.fail(1, "plan 512 4096 4095 --format q4_0 --caps browser").contains("4095"));
    bench.fail(2, "plan 512 4096 4096 --format q4_0 --transpose NT");
    assert!(bench.fail(2, "plan 8 8 8 --precision f64").contains("f16-sums, int8-activations are"));
    assert!(
        bench
            .fail(1, "plan 9999999999 9999999999 9999999999 --caps browser")
            .contains("9999999999")
    );
    let experts = |rows: u32, flags: &str| {
        let line = format!("plan {} 1408 2048 --groups 64 --expected-rows {rows}", 64 * rows);
        let line = format!("{line} --dtype f16 {flags} --caps nvidia-h200");
        chosen(&bench.succeed(&line)).unwrap_or_default()
    };
    let codes = "--format affine-4bit-g64-f16";
    for (rows, flags, kernel) in
        [(32, "", "coop/32x128x32-4"), (32, codes, "coop/32x64x64-k"), (1, codes, "dot/")]
    {
        let chosen = experts(rows, flags);
        assert!(chosen.contains(kernel), "{rows} rows, {flags}: {chosen}");
    }
    bench.fail(2, "plan 8 8 8 --expected-rows 4 --caps browser");
    bench.fail(2, "plan 8 8 8 --groups 0 --caps browser");
    let many = "plan 8 99999999 99999999 --groups 99999999 --caps browser";
    assert!(bench.fail(1, many).contains("B of 99999999 by 99999999 by 99999999"));
    for adapter in adapters() {
        bench.succeed(&format!("plan 64 64 64 --adapter {adapter}"));
        bench.succeed(&format!("plan 64 64 64 --groups 3 --transpose NT --adapter {adapter}"));
    }
}

#[test]
fn plans_take_prepared_operands() {
    let bench = Bench::new();
    for (line, said, packed) in [
        ("4095 --dtype f16", "problem C", [true, true]),
        ("4095 --dtype f16 --prepared both", "prepared a  a copy of 4194304 bytes", [false, false]),
        ("4095 --dtype f16 --prepared b", "prepared b  a copy of 33554432 bytes", [true, false]),
        ("4096 --dtype bf16 --prepared a", "prepared a  a copy of ", [false, true]),
        ("4096 --dtype f16 --prepared b", "prepared b  no copy: ", [false, false]),
        ("4096 --dtype f16 --format q4_0 --prepared b", "prepared b  a copy of ", [false, false]),
        ("4096 --precision split-f32 --prepared b", "prepared b  a copy of ", [true, false]),
        ("4096 --prepared b", "prepared b  no copy: ", [false, false]),
    ] {
        let plan = bench.succeed(&format!("plan 512 4096 {line} --caps nvidia-h200"));
        assert!(plan.starts_with(said), "{line}: {plan}");
        let found = ["a", "b"].map(|operand| plan.contains(&format!("  pack {operand}  ")));
        assert_eq!(found, packed, "{line}: {plan}");
    }
    for adapter in adapters() {
        bench.succeed(&format!("plan 64 64 63 --dtype f16 --prepared both --adapter {adapter}"));
    }
    bench.fail(2, "plan 8 8 8 --prepared c");
}

#[test]
fn apples_adapters_are_planned_for_in_both_languages() {
    let bench = Bench::new();
    for (caps, in_msl) in
        [("apple-m1", true), ("apple-m4-max", true), ("nvidia-h200", false), ("browser", false)]
    {
        let plan = bench.succeed(&format!("plan 512 384 1536 --caps {caps}"));
        assert!(plan.contains("  simt/") && plan.contains("  msl-gemm/") == in_msl, "{plan}");
    }
    let plan = bench.succeed("plan 512 384 1536 --caps apple-m1 --kernel msl-gemm/64x64x16");
    assert!(plan.contains("chosen  msl-gemm/64x64x16"), "{plan}");
    assert!(bench.fail(1, "plan 5 6 7 --caps nvidia-h200 --kernel msl-gemm").contains("msl-gemm"));
}

/// With `TILEWISE_MSL`, a warning tells of kernels that do not compile, the report names the kernel
/// that ran, and `info` lists the kernels that are tried.
#[test]
fn msl_where_it_does_not_compile() {
    let bench = Bench::new();
    if adapters().iter().any(|adapter| *adapter != "cpu") {
        for (value, tried) in [("on", true), ("off", false)] {
            let output = bench.command("info").env("TILEWISE_MSL", value).output().unwrap();
            assert_eq!(
                text(&output.stdout).contains(" msl-gemm/64x64x16"),
                tried,
                "TILEWISE_MSL={value}"
            );
        }
    }
    bench.npy("a.npy", &[1, 256], &[1.0; 256]);
    bench.npy("b.npy", &[256, 128], &[2.0; 256 * 128]);
    for adapter in adapters().into_iter().filter(|adapter| *adapter != "cpu") {
        for (value, refused) in [("on", 1), ("off", 0), ("", 0)] {
            let line = format!("matmul a.npy b.npy -o c.npy --check --adapter {adapter}");
            let output = bench
                .command(&line)
                .envs([("TILEWISE_MSL", value), ("RUST_LOG", "tilewise=warn")])
                .output()
                .unwrap();
            let [report, said] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
            assert!(
                output.status.success()
                    && report.contains("\nkernel   ")
                    && !report.contains("msl-"),
                "{report}{said}"
            );
            assert_eq!(
                said.matches("is refused by").count(),
                refused,
                "TILEWISE_MSL={value}: {said}"
            );
            assert_eq!(bench.read_npy("c.npy"), (vec![1, 128], vec![512.0; 128]));
        }
    }
}

#[test]
fn the_demo_checks_three_products() {
    let bench = Bench::new();
    for adapter in adapters() {
        let report = bench.succeed(&format!("demo --adapter {adapter}"));
        for part in ["dense", "4-bit", "grouped"] {
            assert!(report.contains(part), "no {part} in\n{report}");
        }
        assert_eq!(report.contains("CPU executor"), adapter == "cpu", "{report}");
    }
    assert!(bench.files().is_empty());
}
