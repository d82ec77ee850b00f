//! Sequences of operations, run at once or recorded.

use crate::context::{Backend, Context};
use crate::gemm::Gemm;
use crate::gpu::Recorder;
use crate::ops::{self, Op, Operation, Pair, PairOperation};
use crate::tensor::Tensor;
use std::sync::Arc;
use tilewise_core::plan::Plan;
use tilewise_core::{Precision, Result};

/// Where operations go.
pub(super) enum Work<'w, 'r, 'p> {
    /// Each runs at once.
    Now,
    /// They are recorded.
    Recorded(&'w mut Recorder<'r, 'p>),
    /// Nothing is computed, and products are kept with their plans.
    Planned(&'w mut Vec<(Gemm, Vec<Plan>)>),
}

impl Work<'_, '_, '_> {
    pub(super) fn op<K: Operation>(&mut self, op: &Op<K>, out: &Tensor) -> Result<()> {
        match self {
            Work::Now => op.run_into(out),
            Work::Recorded(to) => to.record(|pass| op.record(pass, out)),
            Work::Planned(_) => Ok(()),
        }
    }

    /// A copy without gaps.
    pub(super) fn copied(&mut self, x: &Tensor) -> Result<Tensor> {
        let copy = Tensor::zeros(x.context(), x.dtype(), x.shape())?;
        self.op(&ops::copy(x), &copy)?;
        Ok(copy)
    }

    /// All elements as a vector without gaps: a view if possible, or a copy.
    pub(super) fn vector(&mut self, x: &Tensor) -> Result<Tensor> {
        let count = [x.elem_count()];
        match x.is_contiguous() {
            true => x.reshape(&count),
            false => self.copied(x)?.reshape(&count),
        }
    }

    pub(super) fn pair<K: PairOperation>(
        &mut self,
        pair: &Pair<K>,
        outs: [&Tensor; 2],
    ) -> Result<()> {
        match self {
            Work::Now => pair.run_into(outs),
            Work::Recorded(to) => to.record(|pass| pair.record(pass, outs)),
            Work::Planned(_) => Ok(()),
        }
    }

    pub(super) fn product(&mut self, gemm: &Gemm, out: &Tensor) -> Result<()> {
        match self {
            Work::Now => gemm.run_into(out),
            Work::Recorded(to) => gemm.record_to(to, out),
            Work::Planned(products) => {
                let gemm = gemm.clone().out_dtype(out.dtype());
                let plans = gemm.plans()?;
                products.push((gemm, plans));
                Ok(())
            }
        }
    }
}

/// A product with its options: its precision, its row indices and its kernel.
pub(super) fn asked(
    gemm: Gemm,
    precision: Precision,
    rows: Option<&Tensor>,
    kernel: Option<&Arc<str>>,
) -> Gemm {
    let gemm = gemm.precision(precision);
    let gemm = match rows {
        Some(rows) => gemm.gather_rows(rows),
        None => gemm,
    };
    match kernel {
        Some(kernel) => gemm.kernel(&**kernel),
        None => gemm,
    }
}

/// The products of some work with their plans, in their order.
pub(super) fn planned(
    work: impl FnOnce(&mut Work<'_, '_, '_>) -> Result<()>,
) -> Result<Vec<(Gemm, Vec<Plan>)>> {
    let mut products = Vec::new();
    work(&mut Work::Planned(&mut products))?;
    Ok(products)
}

/// Submits the operations; the CPU executor runs them.
pub(super) fn submit(
    context: &Context,
    label: &str,
    work: impl FnOnce(&mut Work<'_, '_, '_>) -> Result<()>,
) -> Result<()> {
    match &context.0.backend {
        Backend::Gpu(gpu) => gpu.submit(label, context.caps(), |to| work(&mut Work::Recorded(to))),
        Backend::Cpu => work(&mut Work::Now),
    }
}

/// Adds the operations to an encoder as one compute pass.
pub(super) fn encode(
    context: &Context,
    encoder: &mut wgpu::CommandEncoder,
    label: &str,
    work: impl FnOnce(&mut Work<'_, '_, '_>) -> Result<()>,
) -> Result<()> {
    context.gpu_backend()?;
    let descriptor = wgpu::ComputePassDescriptor { label: Some(label), timestamp_writes: None };
    record(context, &mut encoder.begin_compute_pass(&descriptor), work)
}

/// Adds the operations to a compute pass.
pub(super) fn record(
    context: &Context,
    pass: &mut wgpu::ComputePass<'_>,
    work: impl FnOnce(&mut Work<'_, '_, '_>) -> Result<()>,
) -> Result<()> {
    context.gpu_backend()?;
    work(&mut Work::Recorded(&mut Recorder::Pass(pass)))
}
