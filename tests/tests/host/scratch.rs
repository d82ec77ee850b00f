//! Plans with a bound on the memory that they need besides operands.

use tilewise_core::caps::RECORDED;
use tilewise_core::plan::Forced;
use tilewise_core::{
    Caps, DType, Error, Format, Grouping, Operand, Plan, Precision, Problem, QuantFormat, plan,
};
use tilewise_shaders::LIBRARY;
use tilewise_tests::pieces;

fn caps(name: &str, max_scratch_bytes: u64) -> Caps {
    let (_, caps) = RECORDED.iter().find(|(known, _)| *known == name).unwrap();
    Caps { max_scratch_bytes, ..caps() }
}

fn most(plan: &Plan) -> u64 {
    plan.scratch_bytes.max(plan.packed_bytes)
}

/// For every bound there is a plan that keeps to it, and its pieces fit together. A plan without a
/// bound needs more. With exactly its memory as the bound, the plan is the same.
#[test]
fn plans_keep_to_a_bound() {
    let dense = |dtype, m, n, k| Problem::dense(dtype, m, n, k);
    let packed =
        |dtype, batch, rows, cols| Operand::packed(Format::Dense(dtype), batch, rows, cols);
    let weights = Format::Quantized(QuantFormat::affine(4, 64, DType::F16).unwrap());
    let split = Problem { precision: Precision::SplitF32, ..dense(DType::F32, 1024, 1024, 1024) };
    let grouped = Problem {
        b: packed(DType::F16, 8, 511, 1027),
        grouping: Grouping::RaggedM { groups: 8, first: 0, offset: 0, expected: None },
        ..dense(DType::F16, 513, 1027, 511)
    };
    let batched = Problem {
        batch: 4,
        a: packed(DType::F16, 4, 513, 255),
        b: packed(DType::F16, 4, 255, 1025),
        c: packed(DType::F16, 4, 513, 1025),
        ..dense(DType::F16, 513, 1025, 255)
    };
    let quantized = Problem {
        b: Operand::packed(weights, 1, 4096, 4096).t(),
        ..dense(DType::F16, 16_384, 4096, 4096)
    };
    let rows: [(&str, &str, Problem, &[u64]); 8] = [
        ("split K", "nvidia-h200", dense(DType::F32, 64, 64, 65_536), &[0, 4096, 1 << 18]),
        (
            "packed",
            "nvidia-h200",
            dense(DType::F16, 1025, 1025, 1025),
            &[1 << 12, 1 << 20, 3 << 20],
        ),
        ("shared words", "browser", dense(DType::F16, 513, 1025, 65), &[1 << 14, 1 << 20]),
        ("split f32", "nvidia-h200", split, &[0, 1 << 20, 1 << 23]),
        ("ranges of K", "browser", dense(DType::F32, 128, 256, 300_000), &[1 << 12, 1 << 15]),
        ("grouped", "nvidia-h200", grouped, &[1 << 14, 1 << 20]),
        ("batched", "nvidia-h200", batched, &[1 << 14, 1 << 20]),
        ("quantized", "nvidia-h200", quantized, &[0, 1 << 20, 1 << 24]),
    ];
    for (name, device, problem, bounds) in rows {
        let unbounded = plan(&problem, &caps(device, u64::MAX), &LIBRARY, None).unwrap();
        let needed = most(&unbounded);
        // Before edges are peeled off, a product needs more memory.
        if unbounded.edges.is_empty() {
            let same = plan(&problem, &caps(device, needed), &LIBRARY, None).unwrap();
            assert_eq!(same, unbounded, "{name}");
        }
        for &bound in bounds {
            let caps = caps(device, bound);
            let bounded = plan(&problem, &caps, &LIBRARY, None)
                .unwrap_or_else(|error| panic!("{name} within {bound}: {error}"));
            assert!(bound < needed, "{name} needs {needed} bytes and is bounded by {bound}");
            let most = most(&bounded);
            println!("{name} within {bound}: {most} bytes, {} passes", bounded.passes.len());
            assert!(most <= bound, "{name} within {bound}: {most} bytes");
            // The check looks at every element of C.
            if problem.m * problem.n * problem.batch < 600_000 {
                pieces::check(&bounded, &caps).unwrap_or_else(|why| panic!("{name}: {why}"));
            }
        }
    }
}

/// Pieces are not cut for a kernel that could take none of them.
#[test]
fn nothing_is_cut_in_vain() {
    let problem = Problem::dense(DType::F16, 4097, 4097, 4097);
    let pieces = |bound| plan(&problem, &caps("nvidia-h200", bound), &LIBRARY, None).unwrap().cuts;
    assert!(pieces(u64::MAX).is_empty() && !pieces(48 << 20).is_empty());
    let words = |bound: u64| {
        let cuts = pieces(bound);
        cuts.iter().map(|cut| cut.operand).filter(|operand| *operand != "scratch").count()
    };
    assert_eq!(words(1 << 20), 0);
}

/// A kernel that is named, and a product that no kernel computes without scratch memory: both
/// errors have the bound.
#[test]
fn what_cannot_be_is_refused() {
    let caps = caps("browser", 0);
    let problem = Problem::dense(DType::F32, 64, 64, 65_536);
    let forced: Forced = "gemv/1x4+k2".parse().unwrap();
    let error = plan(&problem, &caps, &LIBRARY, Some(&forced)).unwrap_err();
    let refused = |error: &Error, words: [&str; 2]| {
        let Error::DeviceLimit(text) = error else { panic!("{error}") };
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    refused(&error, ["scratch needs", "max_scratch_bytes"]);
    // Rows of C share words.
    let error = plan(&Problem::dense(DType::F16, 3, 5, 7), &caps, &LIBRARY, None).unwrap_err();
    refused(&error, ["the limit is 0", "max_scratch_bytes"]);
}
