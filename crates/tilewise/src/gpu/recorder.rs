//! Where dispatches go: into the given compute pass, into a pass of the given encoder, or into the
//! library's own submissions. None of these is estimated to take longer than a submission may.

use super::bind::{Bound, SharedBuffer};
use super::pipeline::Pipeline;
use super::{Device, Gpu};
use std::borrow::BorrowMut;
use std::sync::Arc;
use tilewise_core::{Caps, Result};

/// A dispatch: its pipeline, bindings and workgroups.
#[derive(Clone)]
pub(crate) struct Dispatch {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) bound: Bound,
    pub(crate) grid: Grid,
}

/// The workgroups of a dispatch.
#[derive(Clone)]
pub(crate) enum Grid {
    Given([u32; 3]),
    /// Their numbers lie in a buffer from this byte on.
    Stored(Arc<SharedBuffer>, u64),
}

impl Dispatch {
    fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        self.pipeline.set(pass, &self.bound);
        match &self.grid {
            Grid::Given([x, y, z]) => pass.dispatch_workgroups(*x, *y, *z),
            Grid::Stored(buffer, start) => pass.dispatch_workgroups_indirect(buffer, *start),
        }
    }
}

/// The target into which dispatches are recorded.
pub(crate) trait Target {
    /// Says that the next dispatches take so many seconds. They begin another submission if this
    /// one has no room for them. They must not need what earlier dispatches have left in memory
    /// that products share.
    fn begin(&mut self, _seconds: f64) -> Result<()> {
        Ok(())
    }

    /// Whether one submission may take so many seconds.
    fn has_room(&self, _seconds: f64) -> bool {
        true
    }

    /// Records a dispatch into the pass that is open.
    fn dispatch(&mut self, dispatch: &Dispatch) {
        self.record(&mut |pass| dispatch.record(pass));
    }

    /// Records into the pass that is open.
    fn record(&mut self, work: &mut dyn FnMut(&mut wgpu::ComputePass<'_>));

    /// Whether what is recorded runs. Otherwise pipelines are compiled, and nothing is bound.
    fn runs(&self) -> bool {
        true
    }

    /// Clears bytes of a buffer. A given pass cannot.
    fn clear(&mut self, _buffer: &wgpu::Buffer, _start: u64, _bytes: u64) {}
}

impl Target for wgpu::ComputePass<'_> {
    fn record(&mut self, work: &mut dyn FnMut(&mut wgpu::ComputePass<'_>)) {
        work(self);
    }
}

/// The target of work that is only compiled.
pub(crate) struct Nowhere;

impl Target for Nowhere {
    fn record(&mut self, _: &mut dyn FnMut(&mut wgpu::ComputePass<'_>)) {}

    fn runs(&self) -> bool {
        false
    }
}

/// The target of work that is kept, to be recorded again.
pub(crate) struct Keeper {
    /// Seconds that a submission may take.
    most: f64,
    kept: Vec<Kept>,
    /// Whether all that was recorded is kept.
    is_whole: bool,
}

/// A part of kept work.
enum Kept {
    /// The next dispatches take these seconds.
    Begin(f64),
    Dispatch(Dispatch),
}

impl Keeper {
    pub(crate) fn new(caps: &Caps) -> Self {
        Keeper { most: caps.max_submission_seconds, kept: Vec::new(), is_whole: true }
    }

    /// Whether all that was recorded is kept.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Records once more what is kept.
    pub(crate) fn replay(&self, to: &mut dyn Target) -> Result<()> {
        self.kept.iter().try_for_each(|kept| match kept {
            Kept::Begin(seconds) => to.begin(*seconds),
            Kept::Dispatch(dispatch) => {
                to.dispatch(dispatch);
                Ok(())
            }
        })
    }
}

impl Target for Keeper {
    fn begin(&mut self, seconds: f64) -> Result<()> {
        self.kept.push(Kept::Begin(seconds));
        Ok(())
    }

    fn has_room(&self, seconds: f64) -> bool {
        seconds <= self.most
    }

    fn dispatch(&mut self, dispatch: &Dispatch) {
        self.kept.push(Kept::Dispatch(dispatch.clone()));
    }

    fn record(&mut self, _: &mut dyn FnMut(&mut wgpu::ComputePass<'_>)) {
        self.is_whole = false;
    }

    fn clear(&mut self, _: &wgpu::Buffer, _: u64, _: u64) {
        self.is_whole = false;
    }
}

/// Dispatches that must stay in one submission, which has room for them.
pub(super) struct Whole<'a>(pub(super) &'a mut dyn Target);

impl Target for Whole<'_> {
    fn dispatch(&mut self, dispatch: &Dispatch) {
        self.0.dispatch(dispatch);
    }

    fn record(&mut self, work: &mut dyn FnMut(&mut wgpu::ComputePass<'_>)) {
        self.0.record(work);
    }

    fn runs(&self) -> bool {
        self.0.runs()
    }

    fn clear(&mut self, buffer: &wgpu::Buffer, start: u64, bytes: u64) {
        self.0.clear(buffer, start, bytes);
    }
}

/// An encoder, with a pass that is opened when it is needed.
pub(crate) struct Passes<'l, E> {
    label: &'l str,
    /// It is dropped before its encoder, in the order of the fields.
    pass: Option<wgpu::ComputePass<'static>>,
    encoder: E,
}

impl<'l, E: BorrowMut<wgpu::CommandEncoder>> Passes<'l, E> {
    pub(crate) fn new(label: &'l str, encoder: E) -> Self {
        Passes { label, pass: None, encoder }
    }
}

impl<E: BorrowMut<wgpu::CommandEncoder>> Target for Passes<'_, E> {
    fn record(&mut self, work: &mut dyn FnMut(&mut wgpu::ComputePass<'_>)) {
        let Passes { label, pass, encoder } = self;
        work(pass.get_or_insert_with(|| {
            let label = Some(*label);
            let descriptor = wgpu::ComputePassDescriptor { label, timestamp_writes: None };
            encoder.borrow_mut().begin_compute_pass(&descriptor).forget_lifetime()
        }));
    }

    fn clear(&mut self, buffer: &wgpu::Buffer, start: u64, bytes: u64) {
        self.pass = None;
        self.encoder.borrow_mut().clear_buffer(buffer, start, Some(bytes));
    }
}

/// One submission after the other, each of one compute pass.
struct Submissions<'p> {
    device: &'p Device,
    label: &'p str,
    /// Seconds that a submission may take; `recorded` are those of what is recorded.
    most: f64,
    recorded: f64,
    /// The submission that is being recorded, if something is.
    open: Option<Passes<'p, wgpu::CommandEncoder>>,
}

impl<'p> Submissions<'p> {
    fn open(&mut self) -> &mut Passes<'p, wgpu::CommandEncoder> {
        self.open.get_or_insert_with(|| Passes::new(self.label, self.device.encoder()))
    }

    /// Submits what is recorded.
    fn submit(&mut self) -> Result<()> {
        let Some(Passes { pass, encoder, .. }) = self.open.take() else { return Ok(()) };
        drop(pass);
        self.device.submit(encoder).map(drop)
    }
}

impl Target for Submissions<'_> {
    fn begin(&mut self, seconds: f64) -> Result<()> {
        if self.recorded > 0.0 && self.recorded + seconds > self.most {
            self.submit()?;
            self.recorded = 0.0;
        }
        self.recorded += seconds;
        Ok(())
    }

    fn has_room(&self, seconds: f64) -> bool {
        seconds <= self.most
    }

    fn record(&mut self, work: &mut dyn FnMut(&mut wgpu::ComputePass<'_>)) {
        self.open().record(work);
    }

    fn clear(&mut self, buffer: &wgpu::Buffer, start: u64, bytes: u64) {
        self.open().clear(buffer, start, bytes);
    }
}

impl Gpu {
    /// Submits what `work` records, unless it returns an error.
    pub(crate) fn submit<T>(
        &self,
        label: &str,
        caps: &Caps,
        work: impl FnOnce(&mut dyn Target) -> Result<T>,
    ) -> Result<T> {
        let (device, most) = (&self.device, caps.max_submission_seconds);
        let call = device.call();
        let mut own = Submissions { device, label, most, recorded: 0.0, open: None };
        let made = work(&mut own).inspect_err(|error| call.fail(error))?;
        own.submit()?;
        Ok(made)
    }
}
