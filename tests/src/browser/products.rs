//! Products: the cases of the suite's themes, and every kernel by its name.

use super::Check;
use crate::case::LAYOUTS;
use crate::runner::outcome;
use crate::{Case, all_kernels, floor, themes};
use tilewise::{Context, DType, QuantFormat};
use tilewise_core::Variant;

const F32: [DType; 3] = [DType::F32; 3];

/// Checks of the cases that the device takes.
fn of(context: &Context, cases: Vec<Case>) -> Vec<Check> {
    let wanted = cases.into_iter().filter(|case| case.is_for(context.caps()));
    let check = |(number, case): (usize, Case)| {
        let ([m, n, k], types) = (case.size, [case.a, case.b, case.c].map(|place| place.dtype));
        let [a, b, c] = types.map(DType::name);
        let b = case.quantized.map_or(b.to_owned(), |format| format.to_string());
        let kernel = case.kernel.as_deref().unwrap_or("the planner's kernel");
        Check::new(
            format!("{number} {m}×{n}×{k} {a} by {b} to {c}, {kernel}"),
            |context| async move {
                let wrong = |wrong| format!("{wrong}\n{case:?}");
                Ok(outcome(&context, &case).await.map(drop).map_err(wrong)?)
            },
        )
    };
    wanted.enumerate().map(check).collect()
}

fn sizes() -> Vec<Case> {
    let sizes = [
        [1, 1, 1],
        [2, 3, 5],
        [33, 29, 31],
        [64, 64, 64],
        [128, 96, 200],
        [257, 129, 65],
        [1, 4096, 512],
        [700, 3, 1000],
        [100, 1, 50],
        [65, 130, 33],
    ];
    let mut cases = Vec::new();
    for (i, size) in sizes.into_iter().enumerate() {
        for (j, layout) in LAYOUTS.into_iter().enumerate() {
            let case = Case { seed: (4 * i + j) as u64, ..Case::new(size, F32).layout(layout) };
            let case = if (i + j) % 2 == 0 { case } else { case.odd() };
            cases.push(Case { prepared: i % 4 == 3, ..case });
        }
    }
    cases
}

/// Small and odd sizes, long rows, whole tiles, and sizes of nothing, in every layout.
pub(super) fn dense(context: &Context) -> Vec<Check> {
    of(context, [sizes(), themes::empty()].concat())
}

/// Every pair of types in every layout, and outputs of 16 bits.
pub(super) fn types(context: &Context) -> Vec<Check> {
    of(context, [themes::mixed(), themes::words()].concat())
}

pub(super) fn epilogues(context: &Context) -> Vec<Check> {
    let mut cases = Vec::new();
    for (i, dtype) in DType::FLOATS.into_iter().enumerate() {
        let case = Case::new([9, 22, 12], [dtype, DType::F32, DType::FLOATS[(i + 1) % 3]]);
        cases.extend(themes::epilogues(&case, dtype));
        cases.extend(themes::gates(&case.odd(), dtype));
    }
    of(context, cases)
}

pub(super) fn batches(context: &Context) -> Vec<Check> {
    of(context, [themes::strided(), themes::nested()].concat())
}

/// Every format, along K and across it.
pub(super) fn quantized(context: &Context) -> Vec<Check> {
    let further = themes::on(&[floor(context)], &themes::further_formats());
    let across = themes::across(crate::kernels(context));
    of(context, [themes::quantized(), further, across].concat())
}

/// Groups of rows, of columns and along K, masks, rows and entries by index, shards.
pub(super) fn groups(context: &Context) -> Vec<Check> {
    let on_device = |ends: &[Vec<u32>]| themes::grouped(ends, true);
    let cases = [
        themes::grouped(&themes::ends(), false),
        on_device(&themes::bad_ends()),
        on_device(&themes::lanes()),
        themes::in_shards(on_device(&themes::ends())),
        themes::along_k(&themes::ends(), true),
        themes::masked(),
        themes::indexed(),
        themes::gathered(),
    ];
    of(context, cases.concat())
}

pub(super) fn lists(context: &Context) -> Vec<Check> {
    of(context, [themes::listed(&themes::lists()), themes::aligned_lists()].concat())
}

/// Every kernel and variant of the device, around the edges of its tile.
pub(super) fn kernels(context: &Context) -> Vec<Check> {
    let mut cases = Vec::new();
    for kernel in all_kernels(context) {
        let Variant { bm, bn, bk, .. } = *kernel.variant;
        let [bm, bn, bk] = [bm, bn, bk].map(|size| size as usize);
        let case = |size| Case::new(size, F32).kernel(&kernel.name);
        cases.push(case([bm + 1, bn + 1, bk + 1]).odd());
        cases.push(case([bm, bn, 2 * bk]).layout([false, true]));
        cases.push(Case {
            quantized: Some(QuantFormat::Q8_0),
            ..case([bm.min(9), bn + 3, 96]).layout([false, true])
        });
    }
    of(context, cases)
}

/// Products of every kind on the CPU executor.
pub(super) fn on_cpu(_: &Context) -> Vec<Check> {
    let some = |cases: Vec<Case>, step| cases.into_iter().step_by(step).collect::<Vec<_>>();
    let cases = [
        some(sizes(), 3),
        some(themes::mixed(), 5),
        some(themes::quantized(), 7),
        some(themes::grouped(&themes::ends(), false), 9),
    ];
    let on_cpu = |Check { name, run }| Check { name, run: Box::new(|_| run(Context::cpu())) };
    of(&Context::cpu(), cases.concat()).into_iter().map(on_cpu).collect()
}
