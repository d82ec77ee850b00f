//! Plans with their compiled pipelines, and the keys by which they are found.

use super::bind::{Factors, Identity, SharedBuffer};
use super::pipeline::Pipeline;
use crate::cache::lock;
use std::sync::{Arc, Mutex};
use tilewise_core::plan::{Index, Pass, Quantize, Table, Take};
use tilewise_core::problem::{Copied, Precision};
use tilewise_core::{
    Activation, Bias, Epilogue, Gathered, Grouping, Operand, Params, Problem, Result,
};

/// A plan whose pipelines are compiled.
pub(crate) struct Compiled {
    pub(super) identity: Identity,
    pub(super) steps: Vec<Step>,
    pub(super) scratch_bytes: u64,
    pub(super) packed_bytes: u64,
    /// Whether the rows of A must be copied by their indices before.
    pub(crate) copies_rows: bool,
    /// Uniforms of the last call, with its factors.
    uniforms: Mutex<Option<(Factors, Uniforms)>>,
    /// Parameters of the last call with factors on the device. The device writes the factors into
    /// them before each call.
    written: Mutex<Option<(Factors, Arc<SharedBuffer>)>>,
}

/// One uniform buffer per pass.
type Uniforms = Arc<[wgpu::Buffer]>;

impl Compiled {
    pub(super) fn new(
        identity: Identity,
        steps: Vec<Step>,
        scratch_bytes: u64,
        packed_bytes: u64,
    ) -> Self {
        Compiled {
            identity,
            steps,
            scratch_bytes,
            packed_bytes,
            copies_rows: false,
            uniforms: Mutex::default(),
            written: Mutex::default(),
        }
    }

    /// The plan with `copies_rows`: whether the rows of A must be copied before.
    pub(super) fn copying_rows(self, copies_rows: bool) -> Self {
        Compiled { copies_rows, ..self }
    }

    /// The parameters of the passes with these factors, in uniform buffers that `make` makes.
    pub(super) fn uniforms(
        &self,
        factors: Factors,
        make: impl Fn(&Params) -> Result<wgpu::Buffer>,
    ) -> Result<Uniforms> {
        if let Some((last, uniforms)) = &*lock(&self.uniforms)
            && *last == factors
        {
            return Ok(uniforms.clone());
        }
        let Factors { alpha, beta, .. } = factors;
        let made = self.steps.iter().map(|step| make(&Params { alpha, beta, ..step.pass.params }));
        let uniforms: Uniforms = made.collect::<Result<_>>()?;
        let replaced = lock(&self.uniforms).replace((factors, uniforms.clone()));
        // Without the lock, whatever a driver does when its objects go.
        drop(replaced);
        Ok(uniforms)
    }

    /// Like `uniforms`, in one buffer that `make` makes, for the device to write factors into. Each
    /// pass has its parameters at a multiple of `stride` bytes.
    pub(super) fn written(
        &self,
        factors: Factors,
        stride: usize,
        make: impl FnOnce(&[u8]) -> Result<Arc<SharedBuffer>>,
    ) -> Result<Arc<SharedBuffer>> {
        if let Some((last, written)) = &*lock(&self.written)
            && *last == factors
        {
            return Ok(written.clone());
        }
        let written = make(&self.params(factors, stride))?;
        let replaced = lock(&self.written).replace((factors, written.clone()));
        // Without the lock, whatever a driver does when its objects go.
        drop(replaced);
        Ok(written)
    }

    /// The parameters of the passes with these factors, each at a multiple of `stride` bytes.
    pub(super) fn params(&self, factors: Factors, stride: usize) -> Vec<u8> {
        let Factors { alpha, beta, .. } = factors;
        let mut bytes = vec![0; stride * self.steps.len()];
        for (slot, step) in bytes.chunks_exact_mut(stride).zip(&self.steps) {
            let params = Params { alpha, beta, ..step.pass.params };
            slot[..size_of::<Params>()].copy_from_slice(bytemuck::bytes_of(&params));
        }
        bytes
    }

    /// Estimated seconds of all passes.
    pub(crate) fn seconds(&self) -> f64 {
        self.steps.iter().filter_map(|step| step.pass.piece_seconds).sum()
    }
}

/// A pass and its pipeline.
pub(super) struct Step {
    pub(super) pass: Pass,
    pub(super) pipeline: Pipeline,
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
