//! `--first-hour`, on software adapters: the file has every question, and honest reasons.

use crate::workbench::{Workbench, software};
use tilewise::{Context, ContextOptions};
use tilewise_benches::first_hour::runner::Runner;
use tilewise_benches::first_hour::{Figures, Hour, Outcome, QUESTIONS};
use tilewise_benches::inputs::Inputs;
use tilewise_core::plan::Forced;
use tilewise_tests::program::text;

/// The word by which `--adapter` finds lavapipe, the one adapter here that is quick.
fn lavapipe() -> Option<&'static str> {
    software().iter().any(|name| name.contains("llvmpipe")).then_some("llvmpipe")
}

/// The file of a run with this environment variable.
fn hour(bench: &Workbench, line: &str, (name, value): (&str, &str)) -> Hour {
    let output = bench.command(line).env(name, value).output().unwrap();
    let said = text(&output.stderr);
    assert!(
        output.status.success() && said.contains("written: target/bench/first-hour.json"),
        "{said}"
    );
    serde_json::from_str(&bench.text("target/bench/first-hour.json")).unwrap()
}

fn outcomes(hour: &Hour, number: usize) -> Vec<(&str, &Outcome)> {
    let question = &hour.questions[number - 1];
    assert_eq!(question.number, number);
    question.answers.iter().map(|answer| (answer.case.as_str(), &answer.outcome)).collect()
}

/// The planner's choices and WGSL are measured; all other answers say why there is no time.
#[test]
fn every_question_is_answered() {
    let bench = Workbench::new();
    let Some(adapter) = lavapipe() else { return };
    // The folder of a module that cannot be imported, even if there is a real one.
    std::fs::create_dir(bench.path("mlx")).unwrap();
    bench.write_text("mlx/__init__.py", "");
    bench.write_text("mlx/core.py", "raise ImportError('no mlx here')");
    let line = format!("--first-hour --adapter {adapter} --quiet --commit 1a2b3c4");
    let hour = hour(&bench, &line, ("PYTHONPATH", bench.path("").to_str().unwrap()));
    assert!(hour.adapter.contains("llvmpipe") && hour.driver.contains("Mesa"), "{hour:?}");
    assert_eq!(
        (hour.backend.as_str(), hour.commit.as_str(), hour.metal_language.as_str()),
        ("vulkan", "1a2b3c4", "none")
    );
    assert!(
        hour.system.starts_with("linux")
            && hour.date.starts_with("20")
            && hour.sizes.starts_with("tiny"),
        "{hour:?}"
    );
    assert_eq!((hour.questions.len(), QUESTIONS.len()), (7, 7));
    for number in 1..=7 {
        let outcomes = outcomes(&hour, number);
        assert!(!outcomes.is_empty(), "{number}");
        for (case, outcome) in outcomes {
            let needs_nothing =
                case.ends_with("by the planner's choice") || case.ends_with("by kernels in WGSL");
            match outcome {
                Outcome::Measured(Figures { ms, language, .. }) => {
                    assert!(
                        needs_nothing && *ms > 0.0 && language == "WGSL",
                        "{case}: {outcome:?}"
                    );
                }
                Outcome::Reason(why) => {
                    let expected = match (number, case) {
                        (1 | 2, _) => "needs Apple's compiler",
                        (_, case) if case.ends_with("quantized_matmul") => "python3",
                        _ => "no kernels in MSL on this adapter",
                    };
                    assert!(!needs_nothing && why.starts_with(expected), "{case}: {why}");
                }
                Outcome::Peaks(peaks) => {
                    assert!(
                        case.starts_with("peak rates") && peaks.is_known(),
                        "{case}: {peaks:?}"
                    );
                }
                other => panic!("{case}: {other:?}"),
            }
        }
    }
}

/// Vulkan compiles no MSL: if it is tried anyway, the driver's words are the answer.
#[test]
fn a_refusal_is_an_answer() {
    let bench = Workbench::new();
    let Some(adapter) = lavapipe() else { return };
    let hour =
        hour(&bench, &format!("--first-hour --adapter {adapter} --quiet"), ("TILEWISE_MSL", "on"));
    for (number, word) in [(3, ""), (4, "the MSL of msl-direct"), (6, "")] {
        for (case, outcome) in outcomes(&hour, number) {
            if matches!(outcome, Outcome::Peaks(_)) {
                continue;
            }
            let Outcome::Reason(why) = outcome else { panic!("{case}: {outcome:?}") };
            assert!(why.starts_with("refused: ") && why.contains(word), "{case}: {why}");
        }
    }
    assert_eq!(hour.reasons("wrong: "), 0);
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

/// The runner computes the library's product from unchanged texts, and says what is wrong with
/// changed texts.
#[test]
fn the_runner_computes_what_the_library_does() {
    let Some(adapter) = lavapipe() else { return };
    let context = Context::request_blocking(&ContextOptions::default().adapter(adapter)).unwrap();
    let mut inputs = Inputs::default();
    // Products with two passes, with edges, and with f16 packed in words.
    for (shape, kernel) in [
        ("70x33x64:NT", "simt/32x32x32+k2"),
        ("33x70x65:TN:f16", "simt/32x32x32+k1"),
        ("8x64x128:NT:f16:x2", "gemv+k1"),
    ] {
        let operands = inputs.operands(&context, &shape.parse().unwrap(), true).unwrap();
        let forced: Forced = kernel.parse().unwrap();
        assert!(forced.known(context.library()).is_ok(), "{kernel}");
        let runner = Runner::new(&context, &operands, kernel, context.caps(), Ok);
        let runner = runner.unwrap_or_else(|error| panic!("{shape}: {error}"));
        operands.check_after(|| runner.run()).unwrap_or_else(|error| panic!("{shape}: {error}"));
        let ours = operands.output().read_bytes_blocking().unwrap();
        operands.check(Some(kernel)).unwrap();
        assert!(ours == operands.output().read_bytes_blocking().unwrap(), "{shape}");
        // A text that writes nothing is wrong, and one that is no WGSL is refused.
        let idle = |_| Ok("@compute @workgroup_size(64) fn main() {}".to_owned());
        let runner = Runner::new(&context, &operands, kernel, context.caps(), idle);
        let wrong = runner.and_then(|runner| operands.check_after(|| runner.run())).unwrap_err();
        assert!(matches!(wrong, tilewise::Error::Malformed(_)), "{wrong}");
        let refused =
            Runner::new(&context, &operands, kernel, context.caps(), |_| Ok("fn main(".into()))
                .err();
        assert!(matches!(refused, Some(tilewise::Error::NoKernel(_))), "{refused:?}");
    }
}
