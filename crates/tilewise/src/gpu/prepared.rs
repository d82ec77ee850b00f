//! Plans made ready to run, and recording them.

use super::Gpu;
use super::bind::{Bound, Identity, Key};
use crate::pipeline::Pipeline;
use crate::storage::Buffers;
use std::num::NonZeroU64;
use std::sync::Arc;
use tilewise_core::kernel::Role;
use tilewise_core::plan::{Pass, Plan};
use tilewise_core::{Activation, Bias, Epilogue, Error, Grouping, Operand, Problem, Result};

/// A plan whose pipelines are compiled and whose parameters lie on the device.
pub(crate) struct Prepared {
    identity: Identity,
    steps: Vec<Step>,
    scratch_bytes: u64,
    packed_bytes: u64,
}

/// A pass with what it needs whatever its buffers are.
struct Step {
    pass: Pass,
    pipeline: Pipeline,
    uniform: wgpu::Buffer,
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

impl Gpu {
    /// What runs a problem, by `make`, which is called when the problem is met for the first time.
    pub(crate) fn prepare(&self, asked: &Asked, make: impl FnOnce() -> Result<Prepared>) -> Result<Arc<Prepared>> {
        self.plans.get_or_make(asked, || Ok(Arc::new(make()?)))
    }

    /// A plan with its pipelines, compiled if they are new, and its parameters.
    ///
    /// # Errors
    /// `NoKernel` where MSL of it is refused, which `Pipelines::refusal` then knows; `Device`, `DeviceLost`.
    pub(crate) fn ready(&self, plan: Plan) -> Result<Prepared> {
        let Plan { passes, scratch_bytes, packed_bytes, .. } = plan;
        #[cfg(not(target_family = "wasm"))]
        self.compile_together(&passes);
        let step = |pass: Pass| {
            let pipeline = self.pipelines.get(self, &pass)?;
            let uniform = self.uniform(bytemuck::bytes_of(&pass.params))?;
            Ok(Step { pass, pipeline, uniform })
        };
        let steps = passes.into_iter().map(step).collect::<Result<_>>()?;
        Ok(Prepared { identity: self.groups.identity(), steps, scratch_bytes, packed_bytes })
    }

    /// Compiles what the passes need on a thread for each: a driver was seen to take a quarter of a second for a large kernel. What fails is met again
    /// by whoever needs it.
    #[cfg(not(target_family = "wasm"))]
    fn compile_together(&self, passes: &[Pass]) {
        let mut new: Vec<&Pass> = Vec::new();
        for pass in passes {
            if !self.pipelines.has(pass) && new.iter().all(|other| other.parts != pass.parts) {
                new.push(pass);
            }
        }
        if new.len() < 2 {
            return;
        }
        std::thread::scope(|scope| {
            for pass in new {
                let compile = || drop(self.pipelines.get(self, pass));
                // Without a thread it is compiled later.
                drop(std::thread::Builder::new().spawn_scoped(scope, compile));
            }
        });
    }

    /// Records a plan's passes.
    pub(crate) fn record(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        prepared: &Prepared,
        buffers: &Buffers<'_>,
    ) -> Result<()> {
        self.alive()?;
        let scratch = self.at_least(&self.scratch, "tilewise scratch", prepared.scratch_bytes)?;
        let packed = self.at_least(&self.packed, "tilewise packed", prepared.packed_bytes)?;
        let mut bound = buffers.map(|bound| bound?.on_device());
        bound[Role::Scratch as usize] = scratch.as_deref().map(|buffer| (buffer, 0));
        bound[Role::Packed as usize] = packed.as_deref().map(|buffer| (buffer, 0));
        let key = Key::new(&prepared.identity, &bound);
        let groups = match self.groups.get(&key) {
            Some(groups) => groups,
            None => {
                let bind = |step| self.bind(step, &bound);
                let groups: Arc<[_]> = prepared.steps.iter().map(bind).collect::<Result<_>>()?;
                self.groups.insert(key, groups.clone());
                groups
            }
        };
        for (step, group) in prepared.steps.iter().zip(&*groups) {
            let [x, y] = step.pass.grid;
            pass.set_pipeline(&step.pipeline.pipeline);
            pass.set_bind_group(0, group, &[]);
            pass.dispatch_workgroups(x, y, 1);
        }
        Ok(())
    }

    fn bind(&self, step: &Step, bound: &Bound<'_>) -> Result<wgpu::BindGroup> {
        let Step { pass, pipeline, uniform } = step;
        let mut entries =
            vec![wgpu::BindGroupEntry { binding: Role::Params.binding(), resource: uniform.as_entire_binding() }];
        for binding in &pass.bindings {
            let operand = binding.role.name();
            let (buffer, offset) = bound[binding.from as usize]
                .ok_or_else(|| Error::WrongContext(format!("{operand} is not in GPU memory")))?;
            let offset = offset + binding.start;
            if offset + binding.bytes > buffer.size() {
                let len = (buffer.size() - offset.min(buffer.size())) / binding.element_bytes;
                let needed = binding.bytes / binding.element_bytes;
                return Err(Error::BufferTooSmall { operand, needed, len });
            }
            let resource = wgpu::BufferBinding { buffer, offset, size: NonZeroU64::new(binding.bytes) };
            let resource = wgpu::BindingResource::Buffer(resource);
            entries.push(wgpu::BindGroupEntry { binding: binding.role.binding(), resource });
        }
        let (label, layout) = (Some(pass.label.as_str()), &pipeline.layout);
        self.catch(|| self.device.create_bind_group(&wgpu::BindGroupDescriptor { label, layout, entries: &entries }))
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
