//! What is only shown: `tilewise info`, `tilewise plan`, `tilewise demo`.

use crate::bench::{Bench, adapters};

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
        assert!(!adapter["kernels"].as_array().unwrap().is_empty(), "{adapter}");
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
    let (small, large) =
        (bench.succeed("plan 1 8192 8192 --caps nvidia-h200"), bench.succeed("plan 4096 4096 4096 --caps nvidia-h200"));
    assert_ne!(small, large);
    let half = |flags: &str| bench.succeed(&format!("plan 4096 4096 4096 --dtype f16 --caps nvidia-h200 {flags}"));
    let (strict, permitted) = (half(""), half("--allow-f16-accumulation"));
    assert!(!strict.contains("sums may be f16") && permitted.contains("sums may be f16"), "{permitted}");
    let chosen = |plan: &str| plan.lines().find(|line| line.starts_with("chosen")).map(str::to_owned);
    assert_ne!(chosen(&strict), chosen(&permitted));
    assert!(bench.fail(1, "plan 9999999999 9999999999 9999999999 --caps browser").contains("9999999999"));
    for adapter in adapters() {
        bench.succeed(&format!("plan 64 64 64 --adapter {adapter}"));
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
