//! Making plans ready to run, and recording them.

use super::Gpu;
use super::bind::{Bound, Place, Places, ROLES, SharedBuffer};
use super::compiled::{Compiled, Conversion, Factors, Step};
use super::outcome::Call;
use super::recorder::{Dispatch, Grid, Target, Whole};
use super::uniforms::Slot;
use smallvec::SmallVec;
use std::mem::offset_of;
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
    /// [`DeviceLimit`](crate::Error) if MSL of the plan is refused, which `Pipelines::refusal` then
    /// knows.
    pub(crate) fn ready(&self, plan: Plan) -> Result<Compiled> {
        let Plan { passes, scratch_bytes, packed_bytes, copies_rows, .. } = plan;
        Ok(Compiled { scratch_bytes, packed_bytes, copies_rows, ..self.compiled(passes, false)? })
    }

    /// The passes and pipelines of a conversion, planned and compiled if nothing like it was met
    /// before.
    pub(crate) fn convert(&self, conversion: Conversion, caps: &Caps) -> Result<Arc<Compiled>> {
        self.conversions.get_or_make(&conversion.asked(), || {
            let passes = match &conversion {
                Conversion::Take(take) => plan::take(take, caps, &CONVERSIONS)?,
                Conversion::Quantize(quantize) => plan::quantize(quantize, caps, &CONVERSIONS)?,
            };
            Ok(Arc::new(self.compiled(passes, true)?))
        })
    }

    /// Passes that need no memory besides their operands, with their pipelines, compiled if they
    /// are new. `moves` is whether their operands are views that move.
    pub(crate) fn compiled(&self, passes: Vec<Pass>, moves: bool) -> Result<Compiled> {
        #[cfg(not(target_family = "wasm"))]
        self.compile_together(&passes, moves);
        let pipeline = |pass: &Pass| self.pipelines.get(&self.device, pass, moves);
        let step = |pass: Pass| Ok(Step { pipeline: pipeline(&pass)?, pass });
        let steps = passes.into_iter().map(step).collect::<Result<_>>()?;
        Ok(Compiled { steps, scratch_bytes: 0, packed_bytes: 0, copies_rows: false })
    }

    /// Compiles the new pipelines of the passes, each on a thread of its own: a driver was seen to
    /// take a quarter of a second for a large kernel. Errors come again when the pipeline is
    /// needed.
    #[cfg(not(target_family = "wasm"))]
    fn compile_together(&self, passes: &[Pass], moves: bool) {
        use super::pipeline::text_of;
        if !self.device.takes_threads() {
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
                let compile = || drop(self.pipelines.get(&self.device, pass, moves));
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
        let uniform = |_, step: &Step| self.uniform(bytemuck::bytes_of(&step.params(factors)));
        self.record_steps(to, compiled, factors, places, uniform)
    }

    /// Records a plan's passes; `uniform` gives the parameters of a pass, from its number.
    fn record_steps(
        &self,
        to: &mut dyn Target,
        compiled: &Compiled,
        factors: Factors,
        places: Places<'_>,
        uniform: impl Fn(usize, &Step) -> Result<Slot>,
    ) -> Result<()> {
        self.device.alive()?;
        if !to.runs() {
            return Ok(());
        }
        let call = self.device.call();
        let Compiled { scratch_bytes, packed_bytes, .. } = *compiled;
        let scratch = (scratch_bytes > 0).then(|| self.scratch(scratch_bytes)).transpose()?;
        let packed = (packed_bytes > 0).then(|| self.packed(packed_bytes)).transpose()?;
        // `places` is copied, because only this call borrows the scratch memory.
        let mut places = places;
        places[Role::Scratch as usize] = scratch.as_deref().map(|buffer| (buffer, 0));
        places[Role::Packed as usize] = packed.as_deref().map(|buffer| (buffer, 0));
        self.account(&call, compiled, factors, &places)?;
        let bind = |(at, step)| self.bind_step(step, uniform(at, step)?, &places);
        // All are bound before the first is recorded: after an error nothing is recorded.
        let bound = compiled.steps.iter().enumerate().map(bind);
        let bound: SmallVec<[_; 4]> = bound.collect::<Result<_>>()?;
        for (Step { pass: planned, pipeline }, bound) in compiled.steps.iter().zip(bound) {
            if let Some(seconds) = planned.piece_seconds {
                to.begin(seconds)?;
            }
            let [x, y] = planned.grid;
            let grid = match (planned.indirect, &packed) {
                (Some(start), Some(packed)) => Grid::Stored(packed.clone(), start),
                _ => Grid::Given([x, y, 1]),
            };
            to.dispatch(&Dispatch { pipeline: pipeline.clone(), bound, grid });
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
        let contents = self.params(compiled, factors);
        let record = |to: &mut dyn Target, params| {
            self.record_written(to, compiled, factors, (written, params), places, caps)
        };
        if !to.has_room(compiled.seconds()) {
            return record(to, self.own_written(&contents)?);
        }
        to.begin(compiled.seconds())?;
        record(&mut Whole(to), self.written(contents, written.map(|factor| factor.is_some()))?)
    }

    fn record_written(
        &self,
        to: &mut dyn Target,
        compiled: &Compiled,
        factors: Factors,
        (written, params): ([Option<Written<'_>>; 2], Arc<SharedBuffer>),
        places: Places<'_>,
        caps: &Caps,
    ) -> Result<()> {
        let stride = self.params_stride();
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
                    offset: ((slot * stride + field) / 4) as u64,
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
        let uniform = |at, _: &Step| Ok((params.clone(), (at * stride) as u32));
        self.record_steps(to, compiled, factors, places, uniform)
    }

    /// The parameters of the passes with these factors, each at a multiple of the stride.
    fn params(&self, compiled: &Compiled, factors: Factors) -> Vec<u8> {
        let stride = self.params_stride();
        let mut bytes = vec![0; stride * compiled.steps.len()];
        for (slot, step) in bytes.chunks_exact_mut(stride).zip(&compiled.steps) {
            slot[..size_of::<Params>()].copy_from_slice(bytemuck::bytes_of(&step.params(factors)));
        }
        bytes
    }

    /// Bytes from the parameters of one pass to those of the next, in a buffer that the device
    /// writes.
    fn params_stride(&self) -> usize {
        let alignment = self.device.limits().min_uniform_buffer_offset_alignment;
        size_of::<Params>().next_multiple_of(alignment as usize)
    }

    /// The bindings of a step, with its parameters in `uniform`.
    fn bind_step(&self, step: &Step, (uniform, start): Slot, places: &Places<'_>) -> Result<Bound> {
        let Step { pass, pipeline } = step;
        let mut bound: SmallVec<[(u32, Place<'_>); ROLES + 1]> = SmallVec::new();
        bound.push((Role::Params.binding(), (&uniform, start.into(), size_of::<Params>() as u64)));
        for binding in &pass.bindings {
            let operand = binding.role.name();
            let (buffer, offset) = places[binding.from as usize].ok_or_else(|| {
                Error::Misuse(format!("wrong context: {operand} is not in GPU memory"))
            })?;
            let offset = offset + binding.start;
            if offset + binding.bytes > buffer.size() {
                let len = (buffer.size() - offset.min(buffer.size())) / binding.element_bytes;
                let needed = binding.bytes / binding.element_bytes;
                return Err(Error::buffer_too_small(operand, needed, len));
            }
            bound.push((binding.role.binding(), (buffer, offset, binding.bytes)));
        }
        self.bind(pipeline, &pass.label, &bound)
    }
}
