//! Operands are right, and a wrong product is found.

use super::expected::CHECKED;
use super::*;
use tilewise_core::Problem;

#[test]
fn what_is_wrong_is_found() {
    let ctx = Context::cpu();
    let mut inputs = Inputs::default();
    for name in [
        "5x7x9",
        "70x3x20:tn:f16",
        "1x200x33:nt:bf16:x3",
        "200x1x8:tt:x2",
        "3x40x128:mxfp4:x2",
        "9x7x20:bf16:prepared",
        "3x40x128:f16:mxfp4:prepared-b",
    ] {
        let shape: Shape = name.parse().unwrap();
        let operands = inputs.operands(&ctx, &shape, true).unwrap();
        assert!(operands.compare(true).is_err_and(|error| is_wrong(&error)), "{name}: zeros pass");
        operands.check(None).unwrap_or_else(|error| panic!("{name}: {error}"));
        let places: Vec<_> =
            operands.expected.iter().map(|expected| (expected.row, expected.col)).collect();
        let [last_row, last_col] = [shape.mnk[0] * shape.batch - 1, shape.mnk[1] - 1];
        for corner in [(0, 0), (0, last_col), (last_row, 0), (last_row, last_col)] {
            assert!(places.contains(&corner), "{name}: {corner:?} is not looked at");
        }
        assert!(
            places.len() <= CHECKED
                && places.len() >= CHECKED.min((last_row + 1) * (last_col + 1)) / 2,
            "{name}: {places:?}"
        );
    }
}

/// Every form of groups passes once it is computed, and fails with other numbers.
#[test]
fn forms_are_told_apart() {
    let ctx = Context::cpu();
    let mut inputs = Inputs::default();
    let upload = |numbers: &[u32]| Tensor::upload(&ctx, numbers, &[numbers.len()]).unwrap();
    let ends = |numbers: &[u32]| GroupEnds::upload(&ctx, numbers).unwrap();
    for (name, wrong) in [
        ("4x6x16:f16:indexed3", Groups::Indexed(upload(&[0, 1, 2, 1]))),
        ("5x6x16:indexed9:gathered", Groups::Indexed(upload(&[0, 5, 1, 6, 3]))),
        ("7x6x16:masked3-4", Groups::Masked(upload(&[5, 5, 5]), Some(4))),
        ("7x6x16:TN:f16:masked3-4", Groups::Masked(upload(&[4, 4, 7]), Some(4))),
        ("7x6x16:masked1-4", Groups::Masked(upload(&[5]), Some(4))),
        ("5x40x16:f16:affine-4bit-g64-f16:masked3", Groups::Masked(upload(&[5, 5, 4]), None)),
        ("9x6x50:TN:f16:ragged-k4", Groups::AlongK(ends(&[12, 25, 36, 50]))),
        ("9x6x50:NT:ragged-k4", Groups::AlongK(ends(&[12, 25, 37, 49]))),
        ("9x6x2:TN:ragged-k4", Groups::AlongK(ends(&[1, 1, 1, 2]))),
        ("16x24x40:f16:list3", Groups::List(ProductList::upload(&ctx, &[]).unwrap())),
        ("30x6x32:f16:e3:gated", Groups::Rows(ends(&[9, 20, 30]))),
        ("30x6x32:e3:gathered", Groups::Rows(ends(&[9, 20, 30]))),
        ("30x6x32:gathered:gated:zipf3", Groups::Rows(ends(&[17, 24, 30]))),
    ] {
        let shape: Shape = match name.contains("affine") {
            true => name.replace("x16", "x64").parse().unwrap(),
            false => name.parse().unwrap(),
        };
        let mut operands = inputs.operands(&ctx, &shape, true).unwrap();
        assert!(operands.compare(true).is_err_and(|error| is_wrong(&error)), "{name}");
        operands.check(None).unwrap_or_else(|error| panic!("{name}: {error}"));
        let problem = operands.product(0, None).problems().unwrap().remove(0);
        let own = shape.problem();
        assert_eq!((problem.batch, problem.entries()), (own.batch, own.entries()), "{name}");
        assert_eq!(problem.gathered, own.gathered, "{name}");
        let end = |problem: &Problem| (problem.epilogue.gated, problem.epilogue.activation);
        assert_eq!(end(&problem), end(&own), "{name}");
        let right = std::mem::replace(&mut operands.groups, wrong);
        // The CPU executor leaves an output as it was, so a new one is made.
        operands.c = Tensor::zeros(&ctx, shape.dtype, operands.c.shape()).unwrap();
        let found = operands.check(None);
        assert!(found.as_ref().is_err_and(is_wrong), "{name}: {found:?}");
        operands.groups = right;
        if operands.rows.take().is_some() {
            let found = operands.check(None);
            assert!(found.as_ref().is_err_and(is_wrong), "{name}: {found:?}");
        }
    }
}

#[test]
fn a_gate_is_not_left_out() {
    let ctx = Context::cpu();
    let mut inputs = Inputs::default();
    for name in ["9x6x32:f16:gated", "9x6x32:x3:gated", "9x6x32:gated:gathered"] {
        let mut operands = inputs.operands(&ctx, &name.parse().unwrap(), true).unwrap();
        operands.check(None).unwrap_or_else(|error| panic!("{name}: {error}"));
        operands.sets[0].2 = None;
        assert!(operands.check(None).is_err_and(|error| is_wrong(&error)), "{name}");
    }
}

#[test]
fn shuffled_rows_are_each_there_once() {
    for count in [1, 2, 3, 8, 64, 97, 2048] {
        let mut rows = shuffled(count);
        let moved = rows.iter().enumerate().filter(|(at, row)| *at != **row as usize).count();
        assert!(moved >= count.saturating_sub(2) / 2, "{count}: {moved}");
        rows.sort_unstable();
        assert!(rows.iter().enumerate().all(|(at, row)| at == *row as usize), "{count}");
    }
}

/// A stack in several buffers holds the same numbers as one in one buffer.
#[test]
fn shards_are_one_stack() {
    let ctx = Context::cpu();
    let mut inputs = Inputs::default();
    for name in ["12x6x32:nt:f16:e3", "12x6x32:zipf5", "12x6x32:f16:e3:prepared-b"] {
        let shape: Shape = name.parse().unwrap();
        let bytes = 6 * 32 * shape.dtype.bytes();
        let mut plans = |most| {
            let operands = inputs.within(&ctx, &shape, &shape.numbers(), true, most).unwrap();
            operands.check(None).unwrap_or_else(|error| panic!("{name}: {error}"));
            operands.product(0, None).plans().unwrap().len()
        };
        assert_eq!([plans(5 * bytes), plans(2 * bytes)], [1, shape.numbers().len().div_ceil(2)]);
    }
}

/// Each group has other weights.
#[test]
fn groups_are_told_apart() {
    let ctx = Context::cpu();
    let mut inputs = Inputs::default();
    for name in ["12x6x32:nt:f16", "12x6x64:f16:affine-4bit-g64-f16"] {
        let shape: Shape = name.parse().unwrap();
        let operands = inputs.within(&ctx, &shape, &[5, 5, 12], true, u64::MAX).unwrap();
        operands.check(None).unwrap_or_else(|error| panic!("{name}: {error}"));
        let all_in_one = inputs.within(&ctx, &shape, &[12, 12, 12], true, u64::MAX).unwrap();
        let mixed = Operands { expected: all_in_one.expected, ..operands };
        assert!(mixed.compare(true).is_err_and(|error| is_wrong(&error)), "{name}");
    }
}
