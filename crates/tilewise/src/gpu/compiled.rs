//! Plans with their compiled pipelines, and the keys by which they are found.

use super::pipeline::Pipeline;
use std::sync::Arc;
use tilewise_core::plan::{Index, Pass, Quantize, Table, Take};
use tilewise_core::problem::{Copied, Precision};
use tilewise_core::{Activation, Bias, Epilogue, Gathered, Grouping, Operand, Params, Problem};

/// A plan whose pipelines are compiled.
pub(crate) struct Compiled {
    pub(super) steps: Vec<Step>,
    pub(super) scratch_bytes: u64,
    pub(super) packed_bytes: u64,
    /// Whether the rows of A must be copied by their indices before.
    pub(crate) copies_rows: bool,
}

impl Compiled {
    /// Estimated seconds of all passes.
    pub(crate) fn seconds(&self) -> f64 {
        self.steps.iter().filter_map(|step| step.pass.piece_seconds).sum()
    }
}

/// A pass and its pipeline.
pub(super) struct Step {
    pub(super) pass: Pass,
    pub(super) pipeline: Arc<Pipeline>,
}

impl Step {
    /// The parameters of the pass with these factors.
    pub(super) fn params(&self, factors: Factors) -> Params {
        let Factors { alpha, beta } = factors;
        Params { alpha, beta, ..self.pass.params }
    }
}

/// Alpha and beta by their bits. A plan depends only on whether beta is 0.
#[derive(Clone, Copy, Default)]
pub(crate) struct Factors {
    alpha: u32,
    beta: u32,
}

impl Factors {
    pub(crate) fn of(epilogue: &Epilogue) -> Self {
        let [alpha, beta] = [epilogue.alpha, epilogue.beta].map(f32::to_bits);
        Factors { alpha, beta }
    }

    /// Whether a product with these factors reads the C that it writes.
    pub(super) fn reads_c(self) -> bool {
        f32::from_bits(self.beta) != 0.0
    }
}

/// The parts of a problem, and the kernel asked for, that a plan depends on. [`Factors`] are the
/// rest.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    sizes: [u64; 4],
    operands: [Operand; 3],
    gathered: Option<Gathered>,
    grouping: Grouping,
    reads_c: bool,
    bias: Option<Bias>,
    activation: Activation,
    residual: Option<Operand>,
    gated: bool,
    precision: Precision,
    copies: [Option<Copied>; 2],
    beside_c: bool,
    kernel: Option<Arc<str>>,
}

impl Asked {
    /// The key of a problem that has passed [`check`](tilewise_core::plan::check). Only that check
    /// depends on the lengths of the operands' storage, so the key leaves them out.
    pub(crate) fn new(problem: &Problem, kernel: Option<&Arc<str>>) -> Self {
        let &Problem { m, n, k, batch, a, gathered, b, c, .. } = problem;
        let Problem { grouping, epilogue, precision, copies, beside_c, .. } = *problem;
        let Epilogue { alpha: _, beta, bias, activation, residual, gated } = epilogue;
        let placed = |operand| Operand { len: 0, ..operand };
        Asked {
            sizes: [m, n, k, batch],
            operands: [a, b, c].map(placed),
            gathered: gathered.map(|gathered| Gathered { len: 0, ..gathered }),
            grouping,
            reads_c: beta != 0.0,
            bias: bias.map(|bias| Bias { operand: placed(bias.operand), ..bias }),
            activation,
            residual: residual.map(placed),
            gated,
            precision,
            copies,
            beside_c,
            kernel: kernel.cloned(),
        }
    }
}

/// A checked problem of taking or quantizing.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Conversion {
    Take(Take),
    Quantize(Quantize),
}

impl Conversion {
    /// The key of this conversion, which leaves out the lengths of storage.
    pub(super) fn asked(&self) -> Self {
        let placed = |table: Table| Table { operand: Operand { len: 0, ..table.operand }, ..table };
        let anywhere = |index: Option<Index>| index.map(|index| Index { len: 0, ..index });
        match *self {
            Conversion::Take(take) => Conversion::Take(Take {
                table: placed(take.table),
                rows: anywhere(take.rows),
                columns: anywhere(take.columns),
                len: 0,
                ..take
            }),
            Conversion::Quantize(quantize) => {
                Conversion::Quantize(Quantize { weights: placed(quantize.weights), ..quantize })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise_core::DType;

    #[test]
    fn a_permission_is_another_question() {
        let strict = Problem::dense(DType::F16, 8, 8, 8);
        let permitted = Problem { precision: Precision::F16Sums, ..strict };
        assert!(Asked::new(&strict, None) == Asked::new(&strict, None));
        assert!(Asked::new(&strict, None) != Asked::new(&permitted, None));
    }

    #[test]
    fn factors_are_the_same_question_but_for_beta_0() {
        let scaled = |alpha, beta| {
            let mut problem = Problem::dense(DType::F32, 8, 8, 8);
            (problem.epilogue.alpha, problem.epilogue.beta) = (alpha, beta);
            Asked::new(&problem, None)
        };
        assert!(scaled(1.0, 0.0) == scaled(2.0, -0.0));
        assert!(scaled(1.0, 0.5) == scaled(f32::NAN, f32::NAN));
        assert!(scaled(1.0, 0.0) != scaled(1.0, 0.5));
    }
}
