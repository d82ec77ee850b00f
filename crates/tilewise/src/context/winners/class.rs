//! Problem classes. A class keeps only what decides which kernel is the fastest, so one measurement
//! serves many problems.

use tilewise_core::plan::check;
use tilewise_core::{Caps, DType, Operand, Problem, Result};

/// The class of a problem, in words: `f32/8 f32/8 f32/8 NN 4096x4096x4096 batch 1`. It keeps
///
/// - the formats of A, B and C. Each has the largest power of two up to 8 that divides offset,
///   strides and row length, because vector loads and stores depend on it, and a `*` if one entry
///   serves a whole batch;
/// - the layout;
/// - M, N and K. Up to 32 they stay as they are, because between a vector and a matrix every row
///   counts. Larger sizes are rounded up to the next quarter of an octave: a step of at most a
///   quarter changes neither the number of waves nor the share of wasted tiles by much. Such M and
///   N also say whether they are multiples of 64, as most tiles are, or leave an `edge` of up to 8,
///   which the planner may peel off, or a larger `rest`;
/// - the number of batch entries or groups, bucketed in the same way;
/// - the precision, if it permits sums in f16, f32 operands split in two f16 terms (in chains of
///   the permitted length), or activations in fewer bytes;
/// - whether matrix units may be used, because winners found without them say nothing about a
///   context with them.
///
/// The epilogue is left out: it costs every kernel about the same.
///
/// # Errors
/// The errors of [`check`], for a problem that cannot be computed at all.
pub(crate) fn class(problem: &Problem, caps: &Caps) -> Result<String> {
    let problem = check(problem)?;
    let Problem { m, n, k, batch, a, b, c, .. } = problem;
    let entries = problem.entries();
    let a = operand(&a, [m, k], batch);
    let b = operand(&b, [k, n], entries);
    let c = operand(&c, [m, n], batch);
    let grouping = problem.grouping;
    let sums = match problem.precision {
        less if problem.may_split()
            || problem.activation_bytes().is_some_and(|bytes| bytes < 3) =>
        {
            format!(" {}", less.name())
        }
        _ if problem.accumulation() == DType::F16 => " f16 sums".to_owned(),
        _ => String::new(),
    };
    let coop = if caps.coop.is_empty() { "" } else { " coop" };
    let (layout, k, entries) = (problem.layout(), bucket(k), bucket(entries));
    Ok(format!(
        "{a} {b} {c} {layout} {}x{}x{k} {grouping} {entries}{sums}{coop}",
        tiled(m),
        tiled(n)
    ))
}

fn operand(operand: &Operand, [rows, cols]: [u64; 2], entries: u64) -> String {
    let Operand { offset, ld, .. } = *operand;
    let strides = operand.entry_strides().into_iter().fold(offset | ld, |all, stride| all | stride);
    let extent = if operand.transposed { rows } else { cols };
    let alignment = 1u64 << (8 | strides | extent).trailing_zeros();
    let shared = if entries > 1 && operand.is_shared() { "*" } else { "" };
    format!("{}/{alignment}{shared}", operand.format)
}

/// Each size up to this one is a class of its own.
const EXACT: u64 = 32;

/// The size itself if small, else the next of four per octave.
fn bucket(size: u64) -> u64 {
    if size <= EXACT { size } else { size.next_multiple_of(1 << ((size - 1).ilog2() - 2)) }
}

/// The bucket of a size that is cut into tiles, and a word for what tiles leave over.
fn tiled(size: u64) -> String {
    let rest = match size % 64 {
        _ if size <= EXACT => "",
        0 => "",
        1..=8 => "edge",
        _ => "rest",
    };
    format!("{}{rest}", bucket(size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise_core::{Format, Grouping, Precision};

    fn of(problem: &Problem) -> String {
        class(problem, &Caps::webgpu_default()).unwrap()
    }

    fn dense(m: u64, n: u64, k: u64) -> String {
        of(&Problem::dense(DType::F32, m, n, k))
    }

    #[test]
    fn sizes() {
        let buckets =
            [0, 1, 31, 32, 33, 40, 41, 64, 65, 4095, 4096, 4097, 5120, 1 << 31].map(bucket);
        assert_eq!(buckets, [0, 1, 31, 32, 40, 40, 48, 64, 80, 4096, 4096, 5120, 5120, 1 << 31]);
        for size in 33..10_000 {
            let bucket = bucket(size);
            assert!(
                bucket >= size && 4 * (bucket - size) < size,
                "{size} is in the bucket of {bucket}"
            );
        }
        assert_eq!(
            [30, 64, 100, 4096, 4100, 4160, 4200].map(tiled),
            ["30", "64", "112rest", "4096", "5120edge", "5120", "5120rest"]
        );
    }

    #[test]
    fn what_matters_and_what_does_not() {
        let problem = Problem::dense(DType::F32, 512, 512, 512);
        assert_eq!(of(&problem), "f32/8 f32/8 f32/8 NN 512x512x512 batch 1");
        assert_eq!(dense(512, 512, 512), dense(512, 448 + 64, 456));
        let mut other = problem;
        other.epilogue.alpha = 3.0;
        (other.a.offset, other.a.len) = (64, other.a.len + 64);
        assert_eq!(of(&problem), of(&other));
        let different = [
            dense(1, 512, 512),
            dense(2, 512, 512),
            dense(512, 512, 1024),
            dense(512, 516, 512),
            dense(512, 513, 512),
            of(&Problem::dense(DType::F16, 512, 512, 512)),
            of(&Problem { b: problem.b.t(), ..problem }),
            of(&Problem { c: Operand::packed(Format::Dense(DType::F16), 1, 512, 512), ..problem }),
            of(&Problem {
                grouping: Grouping::RaggedM { groups: 1, first: 0, offset: 0, expected: None },
                ..problem
            }),
            of(&Problem {
                a: Operand { offset: 1, len: problem.a.len + 1, ..problem.a },
                ..problem
            }),
        ];
        let mut all = different.to_vec();
        all.push(of(&problem));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), different.len() + 1, "{all:#?}");
        let coop = tilewise_core::CoopMatrix { size: 16, operands: DType::F16, sums: DType::F32 };
        let coop = Caps { coop: vec![coop], ..Caps::webgpu_default() };
        assert_eq!(class(&problem, &coop).unwrap(), of(&problem) + " coop");
        // A permission that changes nothing is none.
        let permitted = |dtype| Problem {
            precision: Precision::F16Sums,
            ..Problem::dense(dtype, 512, 512, 512)
        };
        assert_eq!(of(&permitted(DType::F32)), of(&problem));
        let half = of(&Problem::dense(DType::F16, 512, 512, 512));
        assert_eq!(of(&permitted(DType::F16)), half.clone() + " f16 sums");
        assert_eq!(class(&permitted(DType::F16), &coop).unwrap(), half.clone() + " f16 sums coop");
        let split = |dtype| Problem { precision: Precision::SplitF32, ..permitted(dtype) };
        assert_eq!(
            (of(&split(DType::F32)), of(&split(DType::F16))),
            (of(&problem) + " split-f32", half)
        );
        let format = Format::Quantized(tilewise_core::QuantFormat::Q8_0);
        let weights = Problem { b: Operand::packed(format, 1, 512, 512).t(), ..problem };
        let fewer = |problem| of(&Problem { precision: Precision::Int8Activations, ..problem });
        assert_eq!(
            (fewer(weights), fewer(problem)),
            (of(&weights) + " int8-activations", of(&problem))
        );
    }

    #[test]
    fn one_entry_for_a_batch() {
        let mut problem = Problem::dense(DType::F32, 64, 64, 64);
        problem.batch = 4;
        for operand in [&mut problem.a, &mut problem.c] {
            *operand = Operand::packed(operand.format, 4, 64, 64);
        }
        problem.b.batch_stride = 0;
        assert_eq!(of(&problem), "f32/8 f32/8* f32/8 NN 64x64x64 batch 4");
    }
}
