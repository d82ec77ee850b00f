//! Comparing a computed C with the f64 oracle, block by block of its rows: this shows progress and
//! saves memory.

use crate::array::Array;
use crate::failure::{Failure, Result};
use crate::product;
use crate::progress;
use std::ops::Range;
use tilewise_core::problem::{DType, Grouping, Operand, Problem, Segment};
use tilewise_oracle::moe::Approx;
use tilewise_oracle::{Inputs, Mismatch, reference};

/// Rows of C in a block: so many that gathering B once per block costs little beside the sums.
const BLOCK_ROWS: u64 = 256;

/// Result of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Checked {
    /// The largest error as a fraction of its bound.
    pub(crate) error: f64,
    /// Elements that the product writes.
    pub(crate) elements: u64,
    /// How many of these elements may be any number, because the sum or an intermediate leaves the
    /// range of its type or is undefined.
    pub(crate) unbounded: u64,
}

impl std::fmt::Display for Checked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Checked { error, elements, unbounded } = self;
        let within =
            format!("within the bound of the f64 oracle; the largest error is {error:.3} of it");
        let why = "their sums overflow or are undefined";
        match unbounded {
            0 => f.write_str(&within),
            _ if unbounded == elements => {
                write!(f, "nothing is compared: all {elements} elements have no bound, {why}")
            }
            _ => write!(f, "{within}; {unbounded} of {elements} elements have no bound: {why}"),
        }
    }
}

/// Compares `computed`, a packed C of `problem`, with the oracle.
///
/// The first element outside its bound is a failure. Rows that belong to no group must be zero,
/// whether they lie between groups or behind all.
pub(crate) fn check(problem: &Problem, inputs: &Inputs<'_>, computed: &[f64]) -> Result<Checked> {
    let bar = progress::of_steps(problem.batch * problem.m, "checking against the oracle");
    let mut checked = Checked::default();
    let mut covered = 0;
    let zeros = |rows: Range<u64>| {
        let range = elements(problem, rows.clone());
        let Some(at) = computed[range].iter().position(|&value| value != 0.0) else {
            return Ok(());
        };
        let row = rows.start + at as u64 / problem.n;
        Err(Failure::Other(format!("--check: row {row} of C belongs to no group and is not zero")))
    };
    for block in blocks(problem, inputs.offsets) {
        let piece = block.problem(problem);
        let first_row = block.entry * problem.m + block.rows.start;
        zeros(covered..first_row)?;
        let range = elements(problem, first_row..first_row + piece.m);
        let old = inputs.c.get(range.clone()).unwrap_or_default();
        let expected = reference(&piece, &Inputs { c: old, ..*inputs });
        let error = expected
            .check(&computed[range.clone()], problem.c.format.element().unwrap_or(DType::F32))
            .map_err(|mismatch| {
                let (row, col) = (
                    first_row + mismatch.index as u64 / problem.n,
                    mismatch.index as u64 % problem.n,
                );
                Failure::Other(format!(
                    "--check: the element in row {row}, column {col} of C is {:e}, expected {:e} \
                     within {:e}",
                    mismatch.computed, mismatch.expected, mismatch.bound
                ))
            })?;
        checked.error = checked.error.max(error);
        checked.elements += expected.value.len() as u64;
        let has_none = |(value, bound): (&f64, &f64)| !value.is_finite() || !bound.is_finite();
        checked.unbounded +=
            expected.value.iter().zip(&expected.bound).filter(|pair| has_none(*pair)).count()
                as u64;
        covered = first_row + piece.m;
        bar.inc(piece.m);
    }
    zeros(covered..problem.batch * problem.m)?;
    bar.finish_and_clear();
    Ok(checked)
}

/// Compares a computed matrix with numbers and their errors.
///
/// The first element outside its error is a failure.
pub(crate) fn compare(expected: &Approx, computed: &Array) -> Result<Checked> {
    let columns = computed.shape.last().copied().unwrap_or(1).max(1);
    let numbers = product::wide(computed)?;
    let error = expected.check(&numbers, computed.dtype).map_err(|wrong| {
        let Mismatch { index, computed: got, expected, bound } = wrong;
        let (row, column) = (index / columns, index % columns);
        Failure::Other(format!(
            "--check: the element in row {row}, column {column} of Y is {got:e}, expected \
             {expected:e} within {bound:e}"
        ))
    })?;
    let unbounded = expected.error.iter().filter(|error| error.is_infinite()).count() as u64;
    Ok(Checked { error, elements: expected.value.len() as u64, unbounded })
}

/// Indices in a packed C of the elements of some rows, which count over all batch entries.
fn elements(problem: &Problem, rows: Range<u64>) -> Range<usize> {
    (rows.start * problem.n) as usize..(rows.end * problem.n) as usize
}

/// Some rows of C, all of one batch entry and of one entry of B.
#[derive(Debug, PartialEq)]
struct Block {
    entry: u64,
    b_entry: u64,
    rows: Range<u64>,
}

impl Block {
    /// These rows as a problem of their own, whose C begins with the block.
    fn problem(&self, whole: &Problem) -> Problem {
        let mut piece = whole.piece(self.rows.clone(), 0..whole.n);
        let entry =
            |operand: &mut Operand, entry: u64| operand.offset += entry * operand.batch_stride;
        entry(&mut piece.a, self.entry);
        entry(&mut piece.b, self.b_entry);
        if let Some(bias) = &mut piece.epilogue.bias {
            entry(&mut bias.operand, self.b_entry);
        }
        if let Some(residual) = &mut piece.epilogue.residual {
            entry(residual, self.entry);
        }
        piece.batch = 1;
        piece.grouping = Grouping::Batched;
        piece.c = Operand::packed(whole.c.format, 1, piece.m, whole.n);
        piece
    }
}

/// All rows that are written, in order.
fn blocks(problem: &Problem, offsets: &[u32]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut split = |entry, b_entry, rows: Range<u64>| {
        for start in rows.clone().step_by(BLOCK_ROWS as usize) {
            blocks.push(Block { entry, b_entry, rows: start..(start + BLOCK_ROWS).min(rows.end) });
        }
    };
    let Problem { m, k, batch, grouping, .. } = *problem;
    // The program has no products by ranges of K, so `k` is left out.
    for Segment { entry, group, rows, .. } in grouping.segments([m, k], batch, offsets) {
        split(entry, group, rows);
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise_core::problem::{Activation, Axis, Bias, DType, Epilogue, Format};

    const F32: Format = Format::Dense(DType::F32);

    fn numbers(len: u64, seed: u64) -> Vec<f64> {
        (0..len).map(|i| f64::from(((i * 7 + seed) % 13) as f32 - 6.0)).collect()
    }

    /// A batched problem with every part of the epilogue, of more rows than one block has.
    fn batched() -> Problem {
        let (batch, m, n, k) = (2, BLOCK_ROWS + 9, 3, 2);
        let transposed = |rows, cols| Operand::packed(F32, batch, cols, rows).t();
        Problem {
            batch,
            a: transposed(m, k),
            b: transposed(k, n),
            c: Operand::packed(F32, batch, m, n),
            epilogue: Epilogue {
                alpha: 2.0,
                beta: 3.0,
                bias: Some(Bias {
                    axis: Axis::M,
                    operand: Operand { ld: 1, ..Operand::packed(F32, batch, m, 1) },
                }),
                activation: Activation::Relu,
                residual: Some(Operand::packed(F32, batch, m, n)),
                gated: false,
            },
            ..Problem::dense(DType::F32, m, n, k)
        }
    }

    fn agrees_with_the_whole(problem: &Problem, offsets: &[u32]) {
        let [a, b, c] = [(&problem.a, 1), (&problem.b, 2), (&problem.c, 3)]
            .map(|(operand, seed)| numbers(operand.len, seed));
        let bias = problem.epilogue.bias.map(|bias| numbers(bias.operand.len, 4));
        let residual = problem.epilogue.residual.map(|operand| numbers(operand.len, 5));
        let old = if problem.epilogue.beta == 0.0 { &[][..] } else { &c };
        let inputs = Inputs {
            a: &a,
            b: &b,
            c: old,
            bias: bias.as_deref(),
            residual: residual.as_deref(),
            offsets,
            ..Inputs::default()
        };
        let mut computed = reference(problem, &inputs).value;
        let checked = check(problem, &inputs, &computed).unwrap();
        assert_eq!((checked.error, checked.unbounded), (0.0, 0));
        for index in [0, computed.len() / 2, computed.len() - 1] {
            let right = std::mem::replace(&mut computed[index], 1e9);
            assert!(check(problem, &inputs, &computed).is_err(), "element {index}");
            computed[index] = right;
        }
    }

    #[test]
    fn an_element_outside_its_error_is_named() {
        let numbers = |values: [f32; 4]| Array {
            dtype: DType::F32,
            shape: vec![2, 2],
            bytes: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        };
        let (value, error) = (vec![1.0, 2.0, 3.0, 4.0], vec![0.0, 0.5, 0.0, f64::INFINITY]);
        let expected = Approx { value, error };
        let checked = compare(&expected, &numbers([1.0, 2.25, 3.0, 9.0])).unwrap();
        assert_eq!((checked.error, checked.elements, checked.unbounded), (0.5, 4, 1));
        for wrong in [[1.0, 2.0, 3.5, 4.0], [1.0, 2.0, f32::NAN, 4.0]] {
            let why = compare(&expected, &numbers(wrong)).unwrap_err().line().unwrap();
            assert!(why.contains("row 1, column 0 of Y"), "{why}");
        }
    }

    #[test]
    fn blocks_of_a_batch_agree_with_the_whole() {
        agrees_with_the_whole(&batched(), &[]);
        let broadcast = Problem { b: Operand { batch_stride: 0, ..batched().b }, ..batched() };
        agrees_with_the_whole(&broadcast, &[]);
    }

    #[test]
    fn blocks_of_groups_agree_with_the_whole() {
        let (m, n, k, groups) = (BLOCK_ROWS * 2, 3, 2, 4);
        let problem = Problem {
            b: Operand::packed(F32, groups, k, n),
            grouping: Grouping::RaggedM { groups, first: 0, offset: 0, expected: None },
            ..Problem::dense(DType::F32, m, n, k)
        };
        agrees_with_the_whole(&problem, &[5, 5, 300, 500]);
        agrees_with_the_whole(&problem, &[0, 0, 0, 0]);
        let masked = Problem {
            batch: groups,
            a: Operand::packed(F32, groups, m, k),
            c: Operand::packed(F32, groups, m, n),
            grouping: Grouping::Masked { entries: groups, offset: 0, expected: None },
            ..problem
        };
        agrees_with_the_whole(&masked, &[5, 0, 300, m as u32 - 1]);
        agrees_with_the_whole(&masked, &[0, m as u32, 0, 0]);
    }
}
