//! A product as a list of steps, which a GPU records and the CPU executor runs. Plans and
//! explanations are made of the same list.

use super::Gemm;
use super::groups::Groups;
use crate::context::parts::{Parts, Title};
use crate::execute;
use crate::gpu::Factors;
use crate::recorder::{Recorder, Way};
use crate::right::RightOperand;
use crate::take::Take;
use crate::tensor::Tensor;
use crate::tensor::storage::on_device;
use smallvec::{SmallVec, smallvec};
use tilewise_core::{Epilogue, Result};

/// The steps of a product. Most have one, which takes no memory.
pub(super) type Steps<'s> = SmallVec<[Step<'s>; 1]>;

/// A product that the planner takes as one problem.
pub(super) struct Step<'s> {
    pub(super) gemm: Own<'s, Gemm>,
    /// The output; none if it is still to be allocated, and packed.
    pub(super) c: Option<Own<'s, Tensor>>,
    pub(super) title: Title,
}

/// Something given, or made for a step.
pub(super) enum Own<'s, T> {
    Given(&'s T),
    Made(Box<T>),
}

impl<T> std::ops::Deref for Own<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Own::Given(own) => own,
            Own::Made(own) => own,
        }
    }
}

impl Gemm {
    /// The steps that compute the product into `c`. Without `c` they are for planning alone.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run), for the operands; of an output that steps share, also the
    /// errors of [`run_into`](Self::run_into).
    pub(super) fn lower<'s>(&'s self, c: Option<&'s Tensor>) -> Result<Steps<'s>> {
        let parts = match &self.b {
            RightOperand::Dense(b) => self.by_groups(b)?,
            RightOperand::Quantized(_) => None,
            RightOperand::Shards(shards) => Some(self.by_shards(shards)?),
        };
        let Some(mut steps) = parts else {
            return Ok(smallvec![Step::whole(self, c)]);
        };
        if let Some(c) = c {
            self.is_whole(c)?;
            for step in &mut steps {
                step.c = Some(step.output(c)?);
            }
        }
        Ok(steps)
    }

    /// The parts of the product, for an output that is still to be allocated.
    pub(crate) fn parts(&self) -> Result<Parts> {
        self.parts_of(&self.lower(None)?)
    }

    /// The whole product, also if it has large groups.
    #[cfg(feature = "planner")]
    pub(super) fn whole(&self) -> Result<Parts> {
        self.parts_of(&[Step::whole(self, None)])
    }

    fn parts_of(&self, steps: &[Step<'_>]) -> Result<Parts> {
        let part = |step: &Step<'_>| Ok((step.gemm.bundle(None)?.problem, step.title.clone()));
        let all = steps.iter().map(part).collect::<Result<_>>()?;
        Ok(Parts { context: self.context().clone(), kernel: self.kernel.clone(), all })
    }

    /// Records all steps into `c`. If one of several is impossible, none is recorded.
    pub(crate) fn record_onto(&self, to: &mut Recorder<'_>, c: &Tensor) -> Result<()> {
        if let Way::Plan(planned) = to.way(self.context())? {
            let parts = self.clone().out_dtype(c.dtype()).parts()?;
            let plans = parts.plans()?;
            planned.products.push((parts, plans));
            if self.context().is_cpu() {
                self.prepare(c)?;
            }
            let (gemm, c) = (self.clone(), c.clone());
            planned.operations.push(Box::new(move |to| gemm.record_onto(to, &c)));
            return Ok(());
        }
        let mut steps = self.lower(Some(c))?;
        if !matches!(*steps, [Step { title: Title::Whole, .. }]) {
            steps.iter().try_for_each(|step| step.prepare().map(drop))?;
            self.copy_factors(to, c, &mut steps)?;
        }
        steps.iter().try_for_each(|step| step.record(to))
    }

    /// Plans the steps of a product into `c`, and compiles them on a GPU. Gives whether rows of A
    /// must be copied by their indices.
    ///
    /// # Errors
    /// The errors of [`run_into`](Self::run_into).
    pub(crate) fn prepare(&self, c: &Tensor) -> Result<bool> {
        self.lower(Some(c))?.iter().try_fold(false, |copies, step| Ok(step.prepare()? || copies))
    }
}

impl<'s> Step<'s> {
    /// A step of a product that is made for it.
    pub(super) fn made(gemm: Gemm, title: Title) -> Self {
        Step { gemm: Own::Made(Box::new(gemm)), c: None, title }
    }

    /// The whole product, in one step.
    fn whole(gemm: &'s Gemm, c: Option<&'s Tensor>) -> Self {
        Step { gemm: Own::Given(gemm), c: c.map(Own::Given), title: Title::Whole }
    }

    /// The part of the output `c` that this step writes: for a large group its rows, in a masked
    /// product the entries of its shard; otherwise the whole output.
    fn output(&self, c: &'s Tensor) -> Result<Own<'s, Tensor>> {
        let axis = |from_last| c.shape().len().checked_sub(from_last);
        let part = match (&self.title, &self.gemm.groups) {
            (Title::Group(_, rows), _) => axis(2).map(|axis| (axis, rows)),
            (Title::Shard(groups), Some(Groups::Masked { .. })) => {
                axis(self.gemm.rank_of_entry() + 1).map(|axis| (axis, groups))
            }
            _ => None,
        };
        Ok(match part {
            Some((axis, own)) => Own::Made(Box::new(c.narrow(axis, own.start, own.len())?)),
            None => Own::Given(c),
        })
    }

    /// Plans the step, and compiles it on a GPU. Gives whether rows of A must be copied by their
    /// indices.
    fn prepare(&self) -> Result<bool> {
        let Step { gemm, c, .. } = self;
        let matrix = c.as_deref().map(|c| gemm.as_matrix(c));
        let (problem, context) = (gemm.bundle(matrix.as_deref())?.problem, gemm.context());
        match context.gpu_backend() {
            Ok(gpu) => Ok(context.compile(gpu, &problem, gemm.kernel.as_ref())?.copies_rows),
            Err(_) => context.plan(&problem, gemm.kernel.as_deref()).map(|_| false),
        }
    }

    fn record(&self, to: &mut Recorder<'_>) -> Result<()> {
        let (gemm, context) = (&*self.gemm, self.gemm.context());
        let matrix = self.c.as_deref().map(|c| gemm.as_matrix(c));
        let mut bundle = gemm.bundle(matrix.as_deref())?;
        if let Some(gemm) = gemm.of_whole_alpha(to)? {
            return Step::whole(&gemm, self.c.as_deref()).record(to);
        }
        if let RightOperand::Quantized(w) = &gemm.b
            && let Some(order) = &w.order
        {
            let (take, gemm) = gemm.of_ordered_columns(w, &order.columns)?;
            return self.record_copied(to, &take, gemm);
        }
        match to.way(context)? {
            Way::Record(gpu, target) => {
                let compiled = context.compile(gpu, &bundle.problem, gemm.kernel.as_ref())?;
                if compiled.copies_rows {
                    let (take, gemm) = gemm.of_copied_rows()?;
                    return self.record_copied(to, &take, gemm);
                }
                let factors = Factors::of(&bundle.problem.epilogue);
                let (places, caps) = (on_device(&bundle.buffers), &context.0.caps);
                gpu.record_with(target, &compiled, factors, gemm.written(), places, caps)
            }
            Way::Run => {
                context.plan(&bundle.problem, gemm.kernel.as_deref())?;
                let Epilogue { alpha, beta, .. } = &mut bundle.problem.epilogue;
                [*alpha, *beta] = gemm.numbers([*alpha, *beta])?;
                execute::run(&bundle, context.threads()?)
            }
            Way::Plan(_) => Ok(()),
        }
    }

    /// Records a copy of A, and the product that takes the copy.
    fn record_copied(&self, to: &mut Recorder<'_>, take: &Take, gemm: Gemm) -> Result<()> {
        take.record(to, &gemm.a)?;
        Step::whole(&gemm, self.c.as_deref()).record(to)
    }
}
