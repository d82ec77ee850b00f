//! Products drawn at random, on devices and on the CPU executor. A case that fails is minimised and
//! kept in `proptest-regressions/`, and every later run tries it first. `PROPTEST_CASES` asks for
//! that number of other cases.

use tilewise::{Context, DType, QuantFormat};
use tilewise_tests::case::LAYOUTS;
use tilewise_tests::random::{Weights, property};
use tilewise_tests::{Case, adapters, by_threads, one_of_each, run};

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

/// Runs a case on the CPU executor with several numbers of threads, which must give the same bits.
fn on_threads(contexts: &[Context], case: &Case) -> Result<(), String> {
    let mut first = None;
    for context in contexts {
        let bytes = run(context, case)?.bytes;
        if *first.get_or_insert_with(|| bytes.clone()) != bytes {
            return Err("another number of threads gives other bits".into());
        }
    }
    Ok(())
}

/// Sizes beyond the tiles and the panels of the CPU executor.
#[test]
fn cpu_executor_in_several_panels() {
    let contexts = by_threads();
    let [f32, f16, bf16] = DType::FLOATS;
    for size in [[1, 70, 1100], [2, 300, 1056], [70, 530, 1056], [600, 70, 544]] {
        for (a, b, c) in [(f32, f32, f32), (f16, bf16, f16), (bf16, f32, f32)] {
            for layout in LAYOUTS {
                let case = Case::new(size, [a, b, c]).layout(layout);
                on_threads(&contexts, &case).unwrap_or_else(|why| panic!("{case:?}: {why}"));
            }
        }
        for format in ["q4_0", "affine-3bit-g32-f16", "q6_k", "mxfp8"] {
            let format: QuantFormat = format.parse().unwrap();
            let k = size[2].next_multiple_of(format.block() as usize);
            let mut case = Case::new([size[0], size[1], k], [f16, f32, f32]);
            case.quantized = Some(format);
            on_threads(&contexts, &case).unwrap_or_else(|why| panic!("{case:?}: {why}"));
        }
    }
}

#[test]
fn cpu_executor() {
    let contexts = by_threads();
    property(512, Weights::Any, "proptest-regressions/cpu.txt", |mut case| {
        // The CPU refuses ends that only a device can hold, so they are clamped as a device clamps
        // them.
        if let Some(groups) = &mut case.groups {
            groups.ends.iter_mut().for_each(|end| *end = (*end).min(case.size[0] as u32));
            groups.ends.sort_unstable();
        }
        on_threads(&contexts, &case)
    });
}
