//! Plans made ready to run, and what they are found by.

use super::bind::Identity;
use super::pipeline::Pipeline;
use std::sync::Arc;
use tilewise_core::plan::Pass;
use tilewise_core::{Activation, Bias, Epilogue, Grouping, Operand, Problem};

/// A plan whose pipelines are compiled and whose parameters lie on the device.
pub(crate) struct Prepared {
    pub(super) identity: Identity,
    pub(super) steps: Vec<Step>,
    pub(super) scratch_bytes: u64,
    pub(super) packed_bytes: u64,
}

/// A pass with what it needs whatever its buffers are.
pub(super) struct Step {
    pub(super) pass: Pass,
    pub(super) pipeline: Pipeline,
    pub(super) uniform: wgpu::Buffer,
}

/// A problem and the kernel asked for, in a form that can be looked up: factors by their bits.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    sizes: [u64; 4],
    operands: [Operand; 3],
    grouping: Grouping,
    factors: [u32; 2],
    bias: Option<Bias>,
    activation: Activation,
    residual: Option<Operand>,
    allow_f16_accumulation: bool,
    kernel: Option<Arc<str>>,
}

impl Asked {
    /// Of a problem that [`check`](tilewise_core::plan::check) has passed. How long the storage is that holds an operand concerns that check alone.
    pub(crate) fn new(problem: &Problem, kernel: Option<&Arc<str>>) -> Self {
        let Problem { m, n, k, batch, a, b, c, grouping, epilogue, allow_f16_accumulation } = *problem;
        let Epilogue { alpha, beta, bias, activation, residual } = epilogue;
        let placed = |operand| Operand { len: 0, ..operand };
        Asked {
            sizes: [m, n, k, batch],
            operands: [a, b, c].map(placed),
            grouping,
            factors: [alpha, beta].map(f32::to_bits),
            bias: bias.map(|bias| Bias { operand: placed(bias.operand), ..bias }),
            activation,
            residual: residual.map(placed),
            allow_f16_accumulation,
            kernel: kernel.cloned(),
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
        let permitted = Problem { allow_f16_accumulation: true, ..strict };
        assert!(Asked::new(&strict, None) == Asked::new(&strict, None));
        assert!(Asked::new(&strict, None) != Asked::new(&permitted, None));
    }
}
