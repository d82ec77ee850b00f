//! The suite for browsers: calls that do not block, on one device, with results that are compared
//! with sums in f64. `cargo xtask browser` runs it in browsers, through `bin/browser.rs`.

mod custom;
mod device;
mod errors;
mod products;

use crate::conversions::{self, few_texts, quantizing, taking};
use crate::moe::Operands;
use crate::{Rng, moe, ops};
use std::error::Error;
use std::pin::Pin;
use tilewise::{Context, ContextOptions};
use tilewise_core::plan;
use tilewise_shaders::CONVERSIONS;

/// The outcome of a check; the error says what was wrong.
pub type Outcome = Result<(), Box<dyn Error>>;

type Running = Pin<Box<dyn Future<Output = Outcome>>>;

/// A check by its name.
pub struct Check {
    name: String,
    run: Box<dyn FnOnce(Context) -> Running>,
}

impl Check {
    fn new<R: Future<Output = Outcome> + 'static>(
        name: impl Into<String>,
        run: impl FnOnce(Context) -> R + 'static,
    ) -> Self {
        Check { name: name.into(), run: Box::new(move |context| Box::pin(run(context))) }
    }
}

type Checks = fn(&Context) -> Vec<Check>;

/// The checks of each section, for a device.
const SECTIONS: [(&str, Checks); 16] = [
    ("dense", products::dense),
    ("types", products::types),
    ("epilogues", products::epilogues),
    ("batches", products::batches),
    ("quantized", products::quantized),
    ("groups", products::groups),
    ("lists", products::lists),
    ("kernels", products::kernels),
    ("cpu", products::on_cpu),
    ("moe", layers),
    ("ops", operations),
    ("conversions", conversions),
    ("custom", custom::checks),
    ("device", device::checks),
    ("errors", errors::checks),
    (PLANTED, errors::planted),
];

/// The section in which a complaint of the browser is expected.
const PLANTED: &str = "planted";

/// If checks take turns, a section runs one of this many, and at least one.
const TURNS: usize = 4;

/// The device to test. Browsers on CPUs have fallback adapters only, which are found by name.
fn options() -> ContextOptions {
    ContextOptions::default().adapter("browser-webgpu").require_gpu()
}

/// Runs the sections whose name contains `only`, or a part of each by turns. Tells the page in
/// words: first `adapter`; then, for each section, `case` before each check, `failed` after each
/// check that fails, and `section`; last `end`. `complaints` returns what the browser has
/// complained of since the last call.
///
/// # Errors
/// There is no device.
pub async fn run(
    turn: Option<usize>,
    only: &str,
    say: impl AsyncFn(String),
    complaints: impl Fn() -> String,
) -> tilewise::Result<()> {
    let mut context = Context::request(&options()).await?;
    say(format!("adapter {context:?}")).await;
    for (section, checks) in SECTIONS.into_iter().filter(|(name, _)| name.contains(only)) {
        let all = checks(&context);
        let step = turn.map_or(1, |_| all.len().clamp(1, TURNS));
        let (mut passed, mut ran, count) = (0, 0, all.len());
        for check in all.into_iter().skip(turn.unwrap_or(0) % step).step_by(step) {
            let name = format!("{section}: {}", check.name);
            say(format!("case {name}")).await;
            // Firefox reports invalid buffers of a lost device to scopes of the library.
            let of_lost = check.name.starts_with("lost: ");
            let outcome = (check.run)(context.clone()).await;
            let complaint = complaints();
            ran += 1;
            let wrong = match outcome {
                Ok(()) if complaint.is_empty() || section == PLANTED || of_lost => {
                    passed += 1;
                    continue;
                }
                Ok(()) => "the numbers are right".to_owned(),
                Err(wrong) => wrong.to_string(),
            };
            let heard = if complaint.is_empty() { "" } else { "\nthe browser says: " };
            say(format!("failed {name}\n{wrong}{heard}{complaint}")).await;
            // A new context keeps a failure from harming later checks.
            context = Context::request(&options()).await?;
        }
        say(format!("section {section}: {passed} of {ran} passed, {count} in all")).await;
    }
    say("end".to_owned()).await;
    Ok(())
}

fn layers(_: &Context) -> Vec<Check> {
    let check = |(seed, case): (usize, moe::Case)| {
        let name = format!("{seed} {} tokens, weights in {}", case.tokens, case.weights);
        Check::new(name, move |context| async move {
            let operands = Operands::new(case, seed as u64);
            let [x, logits] = operands.on(&context);
            let y = operands.layer(&context).forward(&x, &logits)?;
            Ok(operands.check(&y).await?)
        })
    };
    moe::cases().into_iter().enumerate().map(check).collect()
}

fn operations(_: &Context) -> Vec<Check> {
    let check = |case: ops::Case| {
        Check::new(case.name.clone(), |context| async move { Ok(case.outcome(&context).await?) })
    };
    ops::all().into_iter().map(check).collect()
}

fn conversions(context: &Context) -> Vec<Check> {
    let caps = context.caps();
    let taking = few_texts(taking(), |case| {
        let table = case.table.store(&mut Rng::new(7)).table;
        plan::take(&case.problem(table), caps, &CONVERSIONS).expect("a plan")
    });
    let quantizing = few_texts(quantizing(), |case| {
        let table = case.weights.store(&mut Rng::new(8)).table;
        plan::quantize(&case.problem(table), caps, &CONVERSIONS).expect("a plan")
    });
    let taking = taking.into_iter().enumerate().map(|(number, case)| {
        Check::new(format!("taking {number}"), |context| async move {
            conversions::take(&context, &case).await
        })
    });
    let quantizing = quantizing.into_iter().enumerate().map(|(number, case)| {
        Check::new(format!("quantizing {number}"), |context| async move {
            conversions::quantize(&context, &case).await
        })
    });
    taking.chain(quantizing).collect()
}
