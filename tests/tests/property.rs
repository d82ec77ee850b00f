//! Products drawn at random, on devices and on the CPU executor. A case that fails is minimised and kept in `proptest-regressions/`, which every later
//! run tries first. `PROPTEST_CASES` asks for so many others.

use tilewise::Context;
use tilewise_tests::random::property;
use tilewise_tests::{Case, adapters, one_of_each, run};

/// A case on every adapter, by the kernel of each adapter's list at `index`.
fn on_adapters(index: usize, case: &Case) -> Result<(), String> {
    for adapter in adapters() {
        let kernel = one_of_each(adapter)[index].clone();
        let split = if kernel.splits && case.groups.is_none() && case.seed.is_multiple_of(4) { "+k3" } else { "" };
        let case = case.clone().kernel(format!("{}{split}", kernel.name));
        run(&adapter.context, &case).map_err(|what| format!("{}: {what}", adapter.name()))?;
    }
    Ok(())
}

#[test]
fn first_kernel() {
    property(96, "proptest-regressions/gpu.txt", |case| on_adapters(0, &case));
}

#[test]
fn second_kernel() {
    property(32, "proptest-regressions/gpu.txt", |case| on_adapters(1, &case));
}

#[test]
fn third_kernel() {
    property(16, "proptest-regressions/gpu.txt", |case| on_adapters(2, &case));
}

#[test]
fn cpu_executor() {
    let context = Context::cpu();
    property(512, "proptest-regressions/cpu.txt", |mut case| {
        // What only a device can hold is clamped by the device.
        if let Some(groups) = &mut case.groups {
            groups.ends.iter_mut().for_each(|end| *end = (*end).min(case.size[0] as u32));
            groups.ends.sort_unstable();
        }
        run(&context, &case).map(|_| ())
    });
}
