//! Operands that are larger than a device's bindings: products run in pieces.

use std::cell::Cell;
use tilewise::{DType, QuantFormat};
use tilewise_core::caps::RECORDED;
use tilewise_core::{
    Axis, Bias, Caps, Dimension, Error, Format, Grouping, Operand, Plan, Problem, explain, plan,
};
use tilewise_shaders::LIBRARY;
use tilewise_tests::cases::{self, WGSL, devices};
use tilewise_tests::random::{Weights, property};
use tilewise_tests::sanitized::{Failure, Job, Shaders, check, options, planned};
use tilewise_tests::{Adapter, Case, Filled, Suite, adapters, one_of_each, pieces, themes, turns};

/// Bytes of a binding on the devices of these tests: room for a thousand numbers.
const LIMIT: u64 = 4096;

/// The most passes of a plan that these tests run; longer plans are only checked.
const MAX_PASSES: usize = 150;

fn limited(caps: &Caps, max_binding_bytes: u64) -> Caps {
    Caps { max_binding_bytes, ..caps.clone() }
}

/// Plans every case of the theme under smaller and smaller limits. Each plan must be whole and fit
/// the limit.
#[test]
fn pieces_fit_and_cover() {
    let mut cut = 0;
    for case in themes::large()
        .into_iter()
        .chain(themes::large().into_iter().map(|case| case.kernel("naive")))
        .chain(themes::large_forms())
    {
        for caps in devices() {
            for limit in [1 << 16, LIMIT + 4, LIMIT] {
                let caps = limited(&caps, limit);
                let plan = planned(&case, &caps)
                    .unwrap_or_else(|failure| panic!("{failure} at {limit}\n    {case:?}"));
                pieces::check(&plan, &caps).unwrap_or_else(|wrong| panic!("{wrong}\n    {case:?}"));
                cut += usize::from(!plan.cuts.is_empty());
            }
        }
    }
    assert!(cut > 500, "{cut}");
}

/// Runs on devices with a small limit: the kernel that compiles fastest runs all cases, the others
/// run samples, and so does the planner's choice.
#[test]
fn on_devices() {
    for adapter in adapters() {
        let context = adapter.with_limits(|limits| limits.max_storage_buffer_binding_size = LIMIT);
        assert_eq!(context.caps().max_binding_bytes, LIMIT);
        // The sanitizer runs all cases; here a pass costs more.
        let some: Vec<_> = themes::large().into_iter().step_by(3).collect();
        let mut cases = themes::sampled(adapter, &some, 9);
        cases.extend(some.into_iter().step_by(4));
        cases.retain(|case| {
            planned(case, context.caps()).is_ok_and(|plan| plan.passes.len() <= MAX_PASSES)
        });
        cases.extend(splits(adapter));
        let mut suite = Suite::default();
        suite.run(adapter.name(), &context, &cases);
        suite.finish(adapter.name());
    }
}

/// Splits of K on a kernel that splits it, in pieces of rows and in pieces of K.
fn splits(adapter: &Adapter) -> Vec<Case> {
    let kernel = one_of_each(adapter)
        .into_iter()
        .find(|kernel| kernel.splits)
        .expect("a kernel that splits K");
    let case = |size| Case::new(size, [DType::F32; 3]).kernel(format!("{}+k3", kernel.name));
    vec![
        case([9, 18, 2500]),
        case([40, 50, 100]).layout([true, false]),
        case([7, 6, 1500]).batch(3).odd(),
    ]
}

/// Formats that cannot be cut for bindings of this size can be cut for larger ones.
#[test]
fn blocks_of_odd_sizes() {
    let formats =
        QuantFormat::kinds().into_iter().filter(|format| !themes::has_ranges(*format, LIMIT));
    let mut count = 0;
    for format in formats {
        let mut limit = 2 * LIMIT;
        while !themes::has_ranges(format, limit) {
            limit *= 2;
        }
        let caps = limited(&devices()[0], limit);
        let case = Case::new([2, 40, 8 * format.block() as usize], [DType::F32; 3]).kernel("naive");
        let case = Case { quantized: Some(format), ..case };
        assert!(
            planned(&case, &caps).is_ok_and(|plan| !plan.cuts.is_empty()),
            "{case:?} at {limit}"
        );
        check(&[caps], &[case], &options(), false);
        count += 1;
    }
    assert!(count > 3, "{count} formats");
}

/// The shaders of the same cases run in the sanitizer, with the ranges of their operands declared.
#[test]
fn in_the_sanitizer() {
    let (with_f16, naive) = cases::pieces(WGSL);
    let naive: Vec<_> = turns::of(naive, 2).collect();
    check(&[with_f16.clone(), Caps { f16: false, ..with_f16.clone() }], &naive, &options(), false);
    let others: Vec<_> = themes::large().into_iter().step_by(7).collect();
    check(&[with_f16], &others, &options(), false);
}

/// Quantized weights are decoded once if a binding holds them decoded, in ranges if a binding holds
/// some, and by each row of tiles if they need no packing.
#[test]
fn decoded_weights() {
    let size = |k| Case::new([3, 600, k], [DType::F32; 3]).kernel("coop/16x32x128");
    let [_, format, ..] = QuantFormat::kinds()[..] else { panic!("formats") };
    for (k, limit, [packs, cuts]) in
        [(96, 1 << 20, [1, 0]), (96, 1 << 18, [2, 1]), (256, 1 << 18, [0, 0])]
    {
        let case = Case { quantized: Some(format), ..size(k) };
        let caps = limited(&devices()[0], limit);
        let plan = planned(&case, &caps).unwrap();
        let packs_b = plan.passes.iter().filter(|pass| pass.label == "pack b").count();
        assert_eq!([packs_b, plan.cuts.len()], [packs, cuts], "K = {k} at {limit}");
        check(&[caps], &[case], &options(), false);
    }
}

fn planned_at(problem: &Problem, limit: u64) -> Plan {
    let caps = limited(&devices()[0], limit);
    let plan =
        plan(problem, &caps, &LIBRARY, None).unwrap_or_else(|error| panic!("{error} at {limit}"));
    pieces::check(&plan, &caps).unwrap_or_else(|wrong| panic!("{wrong} at {limit}"));
    plan
}

/// The limit is just the largest operand's size, then a word less, then a word more.
#[test]
fn at_the_limit() {
    let dense = |m, n, k| Problem::dense(DType::F32, m, n, k);
    for (problem, operand, dimension) in [
        (dense(256, 16, 32), "A", Dimension::M),
        (dense(16, 256, 32), "B", Dimension::K),
        (dense(128, 64, 16), "C", Dimension::M),
    ] {
        for limit in [32 << 10, (32 << 10) + 4] {
            assert_eq!(planned_at(&problem, limit).cuts, []);
        }
        let cuts = planned_at(&problem, (32 << 10) - 4).cuts;
        assert_eq!(
            (cuts[0].operand, cuts[0].dimension, cuts[0].bytes),
            (operand, dimension, 32 << 10)
        );
    }
    // Offsets count from the aligned start of the binding.
    let mut problem = dense(256, 16, 32);
    problem.a = Operand { offset: 64 * 5 + 1, len: 1 << 20, ..problem.a };
    assert_eq!(planned_at(&problem, (32 << 10) + 4).cuts, []);
    assert_eq!(planned_at(&problem, 32 << 10).cuts.len(), 1);
}

/// An operand's layout decides along which dimension cuts make it shorter.
#[test]
fn cuts_follow_layouts() {
    let packed = |rows, cols| Operand::packed(Format::Dense(DType::F32), 1, rows, cols);
    let along = |problem: &Problem| {
        let cuts = planned_at(problem, 1 << 14).cuts;
        assert!(!cuts.is_empty(), "{problem:?}");
        cuts.iter().map(|cut| (cut.operand, cut.dimension)).collect::<Vec<_>>()
    };
    let plain = Problem::dense(DType::F32, 16, 16, 1024);
    assert_eq!(
        along(&Problem { b: packed(16, 1024).t(), ..plain }),
        [("A", Dimension::M), ("B", Dimension::N)]
    );
    assert_eq!(along(&Problem { a: packed(1024, 16).t(), ..plain }), [("A", Dimension::K)]);
    let columns = Problem::dense(DType::F32, 1, 8192, 2);
    assert_eq!(along(&columns)[0], ("B", Dimension::K));
    assert_eq!(along(&columns)[1], ("B", Dimension::N));
    let batched =
        Problem { batch: 8, a: Operand::packed(Format::Dense(DType::F32), 8, 16, 64), ..plain };
    let batched = Problem {
        c: Operand::packed(Format::Dense(DType::F32), 8, 16, 16),
        k: 64,
        b: packed(64, 16),
        ..batched
    };
    assert_eq!(
        along(&Problem { b: Operand { batch_stride: 0, ..batched.b }, ..batched }),
        [("A", Dimension::Entries)]
    );
    // 16-bit rows of an odd length end inside words, so there are two passes. The sums between them
    // are too large for a binding.
    let half = Problem {
        c: Operand::packed(Format::Dense(DType::F16), 1, 101, 51),
        ..Problem::dense(DType::F32, 101, 51, 8)
    };
    let caps = Caps { f16: false, ..limited(&devices()[0], 1 << 14) };
    assert_eq!(plan(&half, &caps, &LIBRARY, None).unwrap().cuts[0].operand, "scratch");
}

/// Operands with more elements than 32 bits can count, and the text that explains how they are cut.
#[test]
fn beyond_32_bits() {
    let h200 = RECORDED.iter().find(|(name, _)| *name == "nvidia-h200").unwrap().1();
    let wide = Caps { max_binding_bytes: u64::MAX, max_buffer_bytes: u64::MAX, ..h200.clone() };
    let dense = Problem::dense(DType::F16, 1 << 17, 64, 1 << 16);
    let quantized = Operand::packed(
        Format::Quantized(QuantFormat::affine(4, 64, DType::F16).unwrap()),
        1,
        1 << 20,
        1 << 13,
    )
    .t();
    let quantized = Problem { b: quantized, ..Problem::dense(DType::F32, 1, 1 << 20, 1 << 13) };
    let mut strided = Problem::dense(DType::F32, 2, 64, 64);
    strided.a = Operand { ld: 1 << 34, len: 1 << 40, ..strided.a };
    let mut experts = Problem {
        grouping: Grouping::RaggedM { groups: 256, first: 0, offset: 0, expected: None },
        ..Problem::dense(DType::F16, 1024, 4096, 8192)
    };
    experts.b = Operand::packed(Format::Dense(DType::F16), 256, 8192, 4096);
    let bias = Operand::packed(Format::Dense(DType::F32), 256, 4096, 1);
    experts.epilogue.bias = Some(Bias { axis: Axis::N, operand: bias });
    for problem in [dense, quantized, strided, experts] {
        for caps in [&h200, &wide, &Caps::webgpu_default()] {
            let plan = plan(&problem, caps, &LIBRARY, None)
                .unwrap_or_else(|error| panic!("{error}: {problem:?}"));
            assert!(!plan.cuts.is_empty(), "{problem:?}");
            let limit = caps.max_binding_bytes;
            let bindings = plan.passes.iter().flat_map(|pass| &pass.bindings);
            assert!(
                bindings
                    .into_iter()
                    .all(|b| b.bytes <= limit && b.start % u64::from(caps.storage_alignment) == 0)
            );
        }
    }
    let text = explain(
        &Problem::dense(DType::F32, 1 << 15, 64, 1 << 12),
        &Caps::webgpu_default(),
        &LIBRARY,
        None,
    )
    .unwrap();
    let line =
        "cut     into 4 ranges: of rows because A has 512 MiB; a binding holds at most 128 MiB\n";
    assert!(text.contains(line), "{text}");
    // Packed operands and peeled edges do not count as ranges.
    let text =
        explain(&Problem::dense(DType::F16, 262_143, 4096, 4097), &h200, &LIBRARY, None).unwrap();
    assert!(
        text.contains("cut     into 2 ranges: of rows")
            && text.contains(" ms for the first piece\n"),
        "{text}"
    );
}

/// Products of odd sizes stay on matrix units if their packed operands fit a binding, together or
/// one by one. None asks for a larger buffer than there is.
#[test]
fn packed_operands_fit() {
    let caps = |name: &str| RECORDED.iter().find(|(known, _)| *known == name).unwrap().1();
    for [m, n, k] in [[24_001; 3], [32_768, 32_768, 32_767], [40_001; 3]] {
        let plan = plan(&Problem::dense(DType::F16, m, n, k), &caps("nvidia-h200"), &LIBRARY, None)
            .unwrap();
        assert_eq!(plan.choice.unwrap().kernel, "coop", "{m}×{n}×{k}");
    }
    // Only the last range of K is odd.
    let (m, n, k) = (5000, 104_000, 40_447);
    let a = Operand::packed(Format::Dense(DType::F16), 1, k, m).t();
    let problem = Problem { a, ..Problem::dense(DType::F16, m, n, k) };
    for name in ["nvidia-h200", "apple-m1", "apple-m4-max"] {
        let caps = caps(name);
        let plan = plan(&problem, &caps, &LIBRARY, None).unwrap();
        assert!(plan.packed_bytes <= caps.max_buffer_bytes, "{name}: {}", plan.packed_bytes);
        let bindings = plan.passes.iter().flat_map(|pass| &pass.bindings);
        assert!(
            bindings.into_iter().all(|binding| binding.bytes <= caps.max_binding_bytes),
            "{name}"
        );
    }
}

/// In a product of any size, all ranges of K share the memory for their sums.
#[test]
fn ranges_of_k_share_their_sums() {
    let passes = |size| {
        let problem = Problem::dense(DType::F32, size, size, size);
        let caps = Caps { max_submission_seconds: f64::INFINITY, ..Caps::webgpu_default() };
        plan(&problem, &caps, &LIBRARY, None).unwrap().passes.len()
    };
    assert!(
        passes(16_384) <= 200 && passes(65_536) <= 20_000,
        "{} {}",
        passes(16_384),
        passes(65_536)
    );
}

/// An operand that cannot be cut is an error with its numbers: group ends, and any operand if a
/// binding holds nothing.
#[test]
fn refused() {
    let refused = |problem: &Problem, limit| {
        plan(problem, &limited(&devices()[0], limit), &LIBRARY, None).unwrap_err()
    };
    let which = "max_storage_buffer_binding_size";
    let dense = Problem::dense(DType::F32, 8, 8, 8);
    assert_eq!(refused(&dense, 2), Error::too_large("A", 4, 2, which));
    let grouped = Problem {
        grouping: Grouping::RaggedM { groups: 2000, first: 0, offset: 0, expected: None },
        b: Operand::packed(Format::Dense(DType::F32), 2000, 8, 8),
        ..dense
    };
    assert_eq!(refused(&grouped, LIMIT), Error::too_large("offsets", 8000, LIMIT, which));
    let huge = Problem::dense(DType::F32, 1 << 31, 1 << 25, 1);
    assert!(
        matches!(refused(&huge, LIMIT), Error::DeviceLimit(text) if text.contains("65536 passes"))
    );
}

/// The plan for a random product under a random limit is right, or is refused with the limit.
#[test]
fn random() {
    let (ran, refused) = (Cell::new(0), Cell::new(0));
    let shaders = Shaders::of_library();
    property(48, Weights::Any, "proptest-regressions/large.txt", |case| {
        let limit = [512, 1024, 2048, LIMIT, 2 * LIMIT][case.seed as usize % 5];
        let caps = limited(&devices()[case.seed as usize / 5 % 2], limit);
        let case = if case.seed % 3 == 0 { case } else { case.kernel("naive") };
        match planned(&case, &caps) {
            Err(Failure::Refused(text))
                if text.starts_with("too large") || text.contains("65536 passes") =>
            {
                refused.set(refused.get() + 1)
            }
            Err(other) => return Err(other.to_string()),
            Ok(plan) => {
                pieces::check(&plan, &caps)?;
                if plan.passes.len() <= MAX_PASSES {
                    let job = Job { filled: Filled::new(&case, &caps)?, plan, rounded: false };
                    job.run(shaders, &options()).map_err(|failure| failure.to_string())?;
                    ran.set(ran.get() + 1);
                }
            }
        }
        Ok(())
    });
    println!("{} ran, {} refused", ran.get(), refused.get());
    assert!(ran.get() > 2 * refused.get(), "{} ran, {} refused", ran.get(), refused.get());
}
