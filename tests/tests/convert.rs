//! Taking and quantizing: in the sanitizer to the last bit, and through the library's calls on every
//! adapter and the CPU executor.

use rayon::prelude::*;
use tilewise_core::Caps;
use tilewise_tests::cases::devices;
use tilewise_tests::conversions::{quantizing, taking};
use tilewise_tests::sanitized::{Conversion, Shaders, options};

/// Runs them in the sanitizer, and fails with what went wrong in the first few.
fn clean(conversions: Vec<Conversion>) {
    let shaders = Shaders::default();
    let run = |conversion: &Conversion| {
        let failure = conversion.run(&shaders, &options()).err()?;
        Some(format!("{failure}\n    {}", conversion.name))
    };
    let failures: Vec<_> = conversions.par_iter().filter_map(run).collect();
    let shown = failures.iter().take(3).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {} failed:\n{shown}", failures.len(), conversions.len());
}

fn device() -> Caps {
    devices()[0].clone()
}

#[test]
fn taking_sanitized() {
    clean(taking().iter().map(|case| Conversion::taking(case, &device()).unwrap()).collect());
}

#[test]
fn quantizing_sanitized() {
    clean(quantizing().iter().map(|case| Conversion::quantizing(case, &device()).unwrap()).collect());
}
