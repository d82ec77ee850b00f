//! Products drawn at random, on devices and on the CPU executor. A case that fails is minimised and
//! kept in `proptest-regressions/`, and every later run tries it first. `PROPTEST_CASES` asks for
//! that number of other cases.

use tilewise::Context;
use tilewise_tests::random::{Weights, property};
use tilewise_tests::{Case, adapters, one_of_each, run};

/// Runs a case on every adapter that has such a kernel, if the kernel takes the product there. A
/// kernel for matrix units gets operands of its type.
fn on_adapters(family: &str, case: &Case) -> Result<(), String> {
    for adapter in adapters() {
        let kernels = one_of_each(adapter);
        let Some(kernel) =
            kernels.iter().find(|kernel| kernel.name.split('/').next() == Some(family))
        else {
            continue;
        };
        // Narrower tiles cannot load eights of weights along N.
        if case.across && !kernel.variant.bn.is_multiple_of(8) {
            continue;
        }
        let split = if kernel.splits && case.groups.is_none() && case.seed.is_multiple_of(4) {
            "+k3"
        } else {
            ""
        };
        let case = case.clone().kernel(format!("{}{split}", kernel.name));
        if case.is_for(adapter.context.caps()) {
            run(&adapter.context, &case).map_err(|what| format!("{}: {what}", adapter.name()))?;
        }
    }
    Ok(())
}

#[test]
fn naive() {
    property(96, Weights::Any, "proptest-regressions/gpu.txt", |case| on_adapters("naive", &case));
}

/// Runs on the kernel that compiles fastest.
#[test]
fn quantized() {
    property(16, Weights::Quantized, "proptest-regressions/gpu.txt", |case| {
        on_adapters("naive", &case)
    });
}

#[test]
fn gemv() {
    property(32, Weights::Any, "proptest-regressions/gpu.txt", |case| on_adapters("gemv", &case));
}

#[test]
fn simt() {
    property(16, Weights::Any, "proptest-regressions/gpu.txt", |case| on_adapters("simt", &case));
}

/// Software adapters have no matrix units: they skip this, and print that they do.
#[test]
fn coop() {
    property(64, Weights::Any, "proptest-regressions/gpu.txt", |case| on_adapters("coop", &case));
}

#[test]
fn cpu_executor() {
    let context = Context::cpu();
    property(512, Weights::Any, "proptest-regressions/cpu.txt", |mut case| {
        // The CPU refuses ends that only a device can hold, so they are clamped as a device clamps
        // them.
        if let Some(groups) = &mut case.groups {
            groups.ends.iter_mut().for_each(|end| *end = (*end).min(case.size[0] as u32));
            groups.ends.sort_unstable();
        }
        run(&context, &case).map(|_| ())
    });
}
