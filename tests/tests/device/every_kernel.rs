//! Every kernel and variant × type × transposes, forced past the planner, around every edge of its
//! tile. Small integers come first, and their results must be exact. Then come random numbers,
//! within the oracle's bound.
//!
//! Compiling takes far longer than running, so each pipeline runs with all sizes and contents
//! before the next one is made. Each variant has twelve pipelines. In them each operand has every
//! type, vector loads and single ones, and is contiguous and not. Epilogues do not depend on the
//! variant, and are tested elsewhere. Variants differ in numbers only. One variant of each kernel
//! has its twelve pipelines on every adapter; the others have theirs on software adapters by turns.

use tilewise::DType;
use tilewise_core::caps::DeviceClass;
use tilewise_tests::case::LAYOUTS;
use tilewise_tests::cases::WGSL;
use tilewise_tests::kernels::{Kernel, even_sizes, odd_sizes};
use tilewise_tests::{
    Adapter, Case, Data, Suite, all_kernels, counted, kernels, one_of_each, scaled, turns,
};

#[test]
fn f32() {
    Suite::on_every_adapter(|adapter| all(adapter, 0));
}

#[test]
fn f16() {
    Suite::on_every_adapter(|adapter| all(adapter, 1));
}

#[test]
fn bf16() {
    Suite::on_every_adapter(|adapter| all(adapter, 2));
}

/// bf16 of a wide range, with infinities and NaN. Matrix units divide lines by powers of two, so
/// they run every case, prepared and not. The planner's kernels run some of the cases.
#[test]
fn wide_bf16() {
    Suite::on_every_adapter(|adapter| {
        // Devices may flush subnormal numbers to zero.
        let split = [scaled::split(WGSL), scaled::split_specials(WGSL)].concat();
        let cases = [scaled::cases(WGSL), scaled::specials(WGSL), split].concat().into_iter();
        let cases: Vec<_> = cases.map(|case| Case { exact: false, ..case }).collect();
        if cases[0].is_for(adapter.context.caps()) {
            let prepared = cases.iter().map(|case| Case { prepared: true, ..case.clone() });
            return prepared.chain(cases.clone()).collect();
        }
        cases.into_iter().step_by(9).map(|case| Case { kernel: None, ..case }).collect()
    });
}

/// Quantized weights with elements of every magnitude, with infinities and NaN. Software adapters
/// run some of the cases.
#[test]
fn wide_beside_weights() {
    Suite::on_every_adapter(|adapter| {
        let step = if adapter.context.caps().class == DeviceClass::Cpu { 5 } else { 1 };
        let fits: Vec<_> =
            all_kernels(adapter).into_iter().map(|kernel| Some(kernel.name)).collect();
        counted::cases(WGSL)
            .into_iter()
            .filter(|case| fits.contains(&case.kernel))
            .step_by(step)
            .collect()
    });
}

/// The cases of all kernels, with A in the type of this index.
fn all(adapter: &Adapter, a: usize) -> Vec<Case> {
    let smallest: Vec<_> = one_of_each(adapter).into_iter().map(|kernel| kernel.name).collect();
    let cases = |kernel: &Kernel| {
        // A driver may leave a variant out. Turns depend on names, so this does not change the
        // others' turns.
        let number = a + kernel.name.bytes().map(usize::from).sum::<usize>();
        let everywhere = smallest.contains(&kernel.name);
        cases(kernel, a, |i| everywhere || adapter.has_turn(number + i))
    };
    let (small, others): (Vec<_>, Vec<_>) =
        kernels(adapter).into_iter().partition(|kernel| smallest.contains(&kernel.name));
    small.iter().chain(turns::of(&others, 2)).flat_map(cases).collect()
}

/// The cases of a kernel in the layouts that are wanted. A has the type of this index; the types of
/// B and C take turns.
fn cases(kernel: &Kernel, a: usize, wanted: impl Fn(usize) -> bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, layout) in LAYOUTS.into_iter().enumerate().filter(|(i, _)| wanted(*i)) {
        // NN and TT are in vectors, NT and TN in single elements, or the other way round.
        let vectors = (i == 0 || i == 3) == (a != 1);
        let types = [a, (a + i) % 3, (a + 2 * i) % 3].map(|t| DType::FLOATS[t]);
        let sizes = if vectors { even_sizes(kernel.variant) } else { odd_sizes(kernel.variant) };
        for (j, size) in sizes.into_iter().enumerate() {
            let case = Case { seed: (100 * i + j) as u64, ..Case::new(size, types) };
            let case = case.kernel(&kernel.name).layout(layout);
            let case = if vectors { case } else { case.odd() };
            // With larger K, the sums outgrow the integers that bf16 holds.
            if types[2] != DType::BF16 || size[2] <= 512 {
                cases.push(case.clone().integers());
            }
            cases.push(Case { a_data: Data::Random, b_data: Data::Random, exact: false, ..case });
        }
    }
    cases
}
