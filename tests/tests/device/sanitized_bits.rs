//! The sanitizer's arithmetic equals the GPUs'. The same plan of every kernel and variant gives
//! equal bits on each adapter and in the sanitizer, except for one difference that WGSL leaves to
//! the device.
//!
//! WGSL gives `fma(a, b, c)` the accuracy of `a * b + c`, so both one rounding and two are right.
//! The sanitizer rounds once, as all GPUs do. Software adapters round twice: Mesa's llvmpipe lowers
//! the operation to a product and a sum (`lower_ffma32` among its NIR options), and SwiftShader,
//! too, takes the machine's fma only if it is told to. So each adapter is asked first. For adapters
//! that round twice, the sanitizer does so, too (`Options::fused`).
//!
//! Some computations have no fixed bits on any device, and are left out:
//!
//! - Matrix units add in an order and with roundings of their own.
//! - tanh and exp: WGSL only bounds their errors.
//! - Subnormal numbers: SwiftShader flushes them.
//! - Sums that a driver may reorder, because WGSL permits it. Mesa does so in one place: its NIR
//!   rule "Reassociate add chains for more MAD/FMA-friendly code" turns (a·b + c·d) + e into
//!   (a·b + e) + c·d, which is alpha·x + beta·C + bias. With that order in the sanitizer the bits
//!   were equal there, too.
//!
//! NVIDIA's driver fuses alpha·x + bias although the shader has a product and a sum. Therefore
//! alpha and beta are powers of two here: their products need no rounding.

use std::collections::BTreeMap;
use tilewise::DType;
use tilewise_tests::cases::for_bits;
use tilewise_tests::kernels::Kernel;
use tilewise_tests::sanitized::{Job, Shaders, options};
use tilewise_tests::{Adapter, Case, Data, adapters, kernels, one_of_each, run};

/// Whether the adapter rounds `fma` once.
fn fuses(adapter: &Adapter) -> bool {
    let [e11, e12] = [2f32.powi(-11), 2f32.powi(-12)];
    // −(1 + 2⁻¹¹) + (1 + 2⁻¹²)² is 2⁻²⁴. If the square is rounded first, it is 0.
    let case = Case::new([1, 1, 2], [DType::F32; 3]).kernel("naive");
    let (a, b) = (vec![-(1.0 + e11), 1.0 + e12], vec![1.0, 1.0 + e12]);
    let outcome =
        run(&adapter.context, &Case { a_data: Data::Given(a), b_data: Data::Given(b), ..case });
    match outcome.expect("a product of two numbers").c[0] {
        0.0 => false,
        sum => {
            assert_eq!(sum, 2f32.powi(-24), "{}", adapter.name());
            true
        }
    }
}

fn same_bits(adapter: &Adapter, cases: &[Case]) {
    let shaders = Shaders::of_library();
    let mut options = options();
    options.fused = fuses(adapter);
    let mut different: BTreeMap<String, usize> = BTreeMap::new();
    for case in cases {
        let gpu = run(&adapter.context, case)
            .unwrap_or_else(|why| panic!("{}: {why}\n    {case:?}", adapter.name()));
        let job = Job::new(case, adapter.context.caps())
            .unwrap_or_else(|why| panic!("{why}\n    {case:?}"));
        let ours = job.run(shaders, &options).unwrap_or_else(|why| panic!("{why}\n    {case:?}"));
        if ours.bytes != gpu.bytes {
            let size = case.c.dtype.bytes() as usize;
            let elements = ours.bytes.chunks(size).zip(gpu.bytes.chunks(size));
            different
                .insert(format!("{case:?}"), elements.filter(|(ours, gpu)| ours != gpu).count());
        }
    }
    println!(
        "{}: {} cases, fma rounds {}",
        adapter.name(),
        cases.len(),
        if options.fused { "once" } else { "twice" }
    );
    let first = different.iter().next();
    assert!(
        different.is_empty(),
        "{}: {} of {} cases differ: {first:?}",
        adapter.name(),
        different.len(),
        cases.len()
    );
}

/// All cases on the fastest-compiling variant of each kernel, and one case on each other variant: a
/// driver compiles far longer than it runs.
fn cases(adapter: &Adapter) -> Vec<Case> {
    let fastest: Vec<_> = one_of_each(adapter).into_iter().map(|kernel| kernel.name).collect();
    let of = |kernel: &Kernel| {
        let all = for_bits(kernel);
        let count = if fastest.contains(&kernel.name) { all.len() } else { 1 };
        all.into_iter().take(count)
    };
    kernels(adapter).iter().filter(|kernel| kernel.variant.unit().is_none()).flat_map(of).collect()
}

#[test]
fn every_kernel_has_the_adapters_bits() {
    for adapter in adapters() {
        same_bits(adapter, &cases(adapter));
    }
}
