//! Making plans ready to run, and recording them.

use super::Gpu;
use super::bind::{Factors, Key, Places, SharedBuffer};
use super::compiled::{Compiled, Conversion, Step};
use super::outcome::{Call, Outcome};
use super::recorder::{Target, Whole};
use std::mem::offset_of;
use std::num::NonZeroU64;
use std::sync::Arc;
use tilewise_core::kernel::Role;
use tilewise_core::plan::{self, Pass, Plan, Table};
use tilewise_core::{Caps, DType, Epilogue, Error, Operand, Params, Result};
use tilewise_shaders::CONVERSIONS;

/// A factor of a product on the device: its operand, and the buffer and byte where it is bound.
pub(crate) type Written<'a> = (Operand, (&'a SharedBuffer, u64));

impl Gpu {
    /// A plan with its pipelines, compiled if they are new.
    ///
    /// # Errors
    /// `NoKernel` if MSL of the plan is refused, which `Pipelines::refusal` then knows; `Device`,
    /// `DeviceLost`.
    pub(crate) fn ready(&self, plan: Plan) -> Result<Compiled> {
        let Plan { passes, scratch_bytes, packed_bytes, copies_rows, .. } = plan;
        let compiled = self.compiled(passes, scratch_bytes, packed_bytes)?;
        Ok(compiled.copying_rows(copies_rows))
    }

    /// The passes and pipelines of a conversion, planned and compiled if nothing like it was met
    /// before.
    pub(crate) fn convert(&self, conversion: Conversion, caps: &Caps) -> Result<Arc<Compiled>> {
        self.conversions.get_or_make(&conversion.asked(), || {
            let passes = match &conversion {
                Conversion::Take(take) => plan::take(take, caps, &CONVERSIONS)?,
                Conversion::Quantize(quantize) => plan::quantize(quantize, caps, &CONVERSIONS)?,
            };
            Ok(Arc::new(self.compiled(passes, 0, 0)?))
        })
    }

    /// Passes with their pipelines, compiled if they are new.
    pub(crate) fn compiled(
        &self,
        passes: Vec<Pass>,
        scratch_bytes: u64,
        packed_bytes: u64,
    ) -> Result<Compiled> {
        #[cfg(not(target_family = "wasm"))]
        self.compile_together(&passes);
        let step =
            |pass: Pass| Ok(Step { pipeline: self.pipelines.get(&self.device, &pass)?, pass });
        let steps = passes.into_iter().map(step).collect::<Result<_>>()?;
        Ok(Compiled::new(self.groups.identity(), steps, scratch_bytes, packed_bytes))
    }

    /// Compiles the new pipelines of the passes, each on a thread of its own: a driver was seen to
    /// take a quarter of a second for a large kernel. Errors come again when the pipeline is
    /// needed. Does nothing on OpenGL, which wgpu gives to one thread at a time.
    #[cfg(not(target_family = "wasm"))]
    fn compile_together(&self, passes: &[Pass]) {
        use super::pipeline::text_of;
        if self.device.adapter_info().backend == wgpu::Backend::Gl {
            return;
        }
        let mut new: Vec<&Pass> = Vec::new();
        for pass in passes {
            if !self.pipelines.has(pass) && new.iter().all(|other| text_of(other) != text_of(pass))
            {
                new.push(pass);
            }
        }
        if new.len() < 2 {
            return;
        }
        std::thread::scope(|scope| {
            for pass in new {
                let compile = || drop(self.pipelines.get(&self.device, pass));
                // Without a thread the pipeline is compiled later.
                drop(std::thread::Builder::new().spawn_scoped(scope, compile));
            }
        });
    }

    /// Records a plan's passes. `factors` replace the factors of the problem that was planned.
    pub(crate) fn record(
        &self,
        to: &mut dyn Target,
        compiled: &Compiled,
        factors: Factors,
        places: Places<'_>,
    ) -> Result<()> {
        self.device.alive()?;
        let call = self.device.call();
        let scratch = self.at_least(&self.scratch, "tilewise scratch", compiled.scratch_bytes)?;
        let packed = self.at_least(&self.packed, "tilewise packed", compiled.packed_bytes)?;
        // `places` is copied, because only this call borrows the scratch memory.
        let mut places = places;
        places[Role::Scratch as usize] = scratch.as_deref().map(|buffer| (buffer, 0));
        places[Role::Packed as usize] = packed.as_deref().map(|buffer| (buffer, 0));
        self.account(&call, compiled, factors, &places)?;
        let key = Key::new(&compiled.identity, &places);
        let groups = match self.groups.get(&key, factors) {
            Some(groups) => groups,
            None => {
                let bind = |(step, uniform)| self.bind(step, uniform, &places);
                let groups: Arc<[_]> = match places[Role::Params as usize] {
                    Some((written, _)) => {
                        let slots =
                            (0..).step_by(self.params_slot()).map(|offset| wgpu::BufferBinding {
                                buffer: written,
                                offset,
                                size: NonZeroU64::new(size_of::<Params>() as u64),
                            });
                        compiled.steps.iter().zip(slots).map(bind).collect::<Result<_>>()?
                    }
                    None => {
                        let usage = wgpu::BufferUsages::empty();
                        let uniforms = compiled.uniforms(factors, |params| {
                            self.new_uniform(bytemuck::bytes_of(params), usage)
                        })?;
                        let whole = uniforms.iter().map(wgpu::Buffer::as_entire_buffer_binding);
                        compiled.steps.iter().zip(whole).map(bind).collect::<Result<_>>()?
                    }
                };
                self.groups.insert(key, factors, groups.clone());
                groups
            }
        };
        for (step, group) in compiled.steps.iter().zip(&*groups) {
            if let Some(seconds) = step.pass.piece_seconds {
                to.begin(seconds)?;
            }
            to.record(&mut |pass| {
                let [x, y] = step.pass.grid;
                pass.set_pipeline(&step.pipeline.pipeline);
                pass.set_bind_group(0, group, &[]);
                match (step.pass.indirect, &packed) {
                    (Some(start), Some(packed)) => pass.dispatch_workgroups_indirect(packed, start),
                    _ => pass.dispatch_workgroups(x, y, 1),
                }
            });
        }
        Ok(())
    }

    /// Tells the call what the passes read and write. What they leave in the library's own memory
    /// is for this call alone, and counts as no bytes.
    fn account(
        &self,
        call: &Call,
        compiled: &Compiled,
        factors: Factors,
        places: &Places<'_>,
    ) -> Result<()> {
        for Step { pipeline, .. } in &compiled.steps {
            call.uses(&pipeline.made)?;
        }
        let bindings = compiled.steps.iter().flat_map(|step| &step.pass.bindings);
        let bound = bindings.filter_map(|binding| {
            let (buffer, start) = places[binding.from as usize]?;
            let own = matches!(binding.from, Role::Scratch | Role::Packed);
            let bytes = if own { 0 } else { binding.bytes };
            let first = start + binding.start;
            Some((binding, buffer, first..first + bytes))
        });
        for (binding, buffer, bytes) in bound.clone() {
            if !binding.writable || (binding.from == Role::C && factors.reads_c()) {
                call.reads(buffer, bytes)?;
            }
        }
        for (_, buffer, bytes) in bound.filter(|(binding, ..)| binding.writable) {
            call.writes(buffer, bytes)?;
        }
        Ok(())
    }

    /// Like [`record`](Self::record), with alpha and beta on the device. For each pass, one
    /// dispatch per factor copies it into that pass's uniform. Calls share the buffer of these
    /// uniforms, because the device runs calls one after the other. Only a call of several
    /// submissions has a buffer of its own, because another call may run between its submissions.
    pub(crate) fn record_with(
        &self,
        to: &mut dyn Target,
        compiled: &Compiled,
        factors: Factors,
        written: [Option<Written<'_>>; 2],
        places: Places<'_>,
        caps: &Caps,
    ) -> Result<()> {
        if written.iter().all(Option::is_none) {
            return self.record(to, compiled, factors, places);
        }
        self.device.alive()?;
        let factors = Factors { written: written.map(|factor| factor.is_some()), ..factors };
        let make = |bytes: &[u8]| {
            let buffer = self.new_uniform(bytes, wgpu::BufferUsages::STORAGE)?;
            Ok(self.groups.share(buffer, Outcome::default()))
        };
        if to.has_room(compiled.seconds()) {
            to.begin(compiled.seconds())?;
            let params = compiled.written(factors, self.params_slot(), make)?;
            let to = &mut Whole(to);
            return self.record_written(to, compiled, (factors, params), written, places, caps);
        }
        let params = make(&compiled.params(factors, self.params_slot()))?;
        self.record_written(to, compiled, (factors, params), written, places, caps)
    }

    fn record_written(
        &self,
        to: &mut dyn Target,
        compiled: &Compiled,
        (factors, params): (Factors, Arc<SharedBuffer>),
        written: [Option<Written<'_>>; 2],
        places: Places<'_>,
        caps: &Caps,
    ) -> Result<()> {
        let fields = [offset_of!(Params, alpha), offset_of!(Params, beta)];
        for slot in 0..compiled.steps.len() {
            for (field, factor) in fields.into_iter().zip(written) {
                let Some((operand, place)) = factor else { continue };
                let take = plan::Take {
                    table: Table { operand, entries: 1, rows: 1, columns: 1 },
                    rows: None,
                    columns: None,
                    zeros: false,
                    dtype: DType::F32,
                    offset: ((slot * self.params_slot() + field) / 4) as u64,
                    len: params.size() / 4,
                    beside_c: false,
                };
                let take = self.convert(Conversion::Take(take.checked()?), caps)?;
                let mut places = Places::default();
                places[Role::B as usize] = Some(place);
                places[Role::C as usize] = Some((&params, 0));
                self.record(to, &take, Factors::of(&Epilogue::default()), places)?;
            }
        }
        let mut places = places;
        places[Role::Params as usize] = Some((&params, 0));
        self.record(to, compiled, factors, places)
    }

    /// Bytes from the parameters of one pass to those of the next, in a buffer that the device
    /// writes.
    fn params_slot(&self) -> usize {
        let alignment = self.device.limits().min_uniform_buffer_offset_alignment;
        size_of::<Params>().next_multiple_of(alignment as usize)
    }

    fn bind(
        &self,
        step: &Step,
        uniform: wgpu::BufferBinding<'_>,
        places: &Places<'_>,
    ) -> Result<wgpu::BindGroup> {
        let Step { pass, pipeline } = step;
        let mut entries = vec![wgpu::BindGroupEntry {
            binding: Role::Params.binding(),
            resource: wgpu::BindingResource::Buffer(uniform),
        }];
        for binding in &pass.bindings {
            let operand = binding.role.name();
            let (buffer, offset) = places[binding.from as usize]
                .ok_or_else(|| Error::WrongContext(format!("{operand} is not in GPU memory")))?;
            let offset = offset + binding.start;
            if offset + binding.bytes > buffer.size() {
                let len = (buffer.size() - offset.min(buffer.size())) / binding.element_bytes;
                let needed = binding.bytes / binding.element_bytes;
                return Err(Error::BufferTooSmall { operand, needed, len });
            }
            let resource =
                wgpu::BufferBinding { buffer, offset, size: NonZeroU64::new(binding.bytes) };
            let resource = wgpu::BindingResource::Buffer(resource);
            entries.push(wgpu::BindGroupEntry { binding: binding.role.binding(), resource });
        }
        let (label, layout) = (Some(pass.label.as_str()), &pipeline.layout);
        self.device.catch_invalid(|| {
            self.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label,
                layout,
                entries: &entries,
            })
        })
    }
}
