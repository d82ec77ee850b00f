//! Recording dispatches: into the given compute pass, or into the library's own submissions. None
//! of these is estimated to take longer than a submission may.

use super::{Device, Gpu};
use tilewise_core::{Caps, Result};

/// The target into which dispatches are recorded.
pub(crate) enum Recorder<'r, 'p> {
    /// The given compute pass.
    Pass(&'r mut wgpu::ComputePass<'p>),
    /// The library's own submissions.
    Submissions(&'r mut Submissions<'p>),
}

/// One submission after the other, each of one compute pass.
pub(crate) struct Submissions<'p> {
    device: &'p Device,
    label: &'p str,
    /// Seconds that a submission may take; `recorded` are those of what is recorded.
    most: f64,
    recorded: f64,
    /// The open pass. It is dropped before its encoder, in the order of the fields.
    pass: wgpu::ComputePass<'static>,
    encoder: wgpu::CommandEncoder,
}

impl Gpu {
    /// Submits what `work` records, unless it returns an error.
    pub(crate) fn submit(
        &self,
        label: &str,
        caps: &Caps,
        work: impl FnOnce(&mut Recorder<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        let (device, most) = (&self.device, caps.max_submission_seconds);
        let call = device.call();
        let (pass, encoder) = open(device, label);
        let mut own = Submissions { device, label, most, recorded: 0.0, pass, encoder };
        let worked = work(&mut Recorder::Submissions(&mut own));
        worked.inspect_err(|error| call.fail(error))?;
        drop(own.pass);
        device.submit(own.encoder).map(drop)
    }
}

impl Recorder<'_, '_> {
    /// Says that the next dispatches take so many seconds. They begin another submission if this
    /// one has no room for them. They must not need what earlier dispatches have left in memory
    /// that products share.
    pub(crate) fn begin(&mut self, seconds: f64) -> Result<()> {
        let Recorder::Submissions(own) = self else { return Ok(()) };
        if own.recorded > 0.0 && own.recorded + seconds > own.most {
            let (pass, encoder) = open(own.device, own.label);
            drop(std::mem::replace(&mut own.pass, pass));
            own.device.submit(std::mem::replace(&mut own.encoder, encoder))?;
            own.recorded = 0.0;
        }
        own.recorded += seconds;
        Ok(())
    }

    /// Whether one submission may take so many seconds.
    pub(crate) fn has_room(&self, seconds: f64) -> bool {
        match self {
            Recorder::Pass(_) => true,
            Recorder::Submissions(own) => seconds <= own.most,
        }
    }

    /// Records into the pass that is open.
    pub(crate) fn record<T>(&mut self, work: impl FnOnce(&mut wgpu::ComputePass<'_>) -> T) -> T {
        match self {
            Recorder::Pass(pass) => work(pass),
            Recorder::Submissions(own) => work(&mut own.pass),
        }
    }
}

fn open(device: &Device, label: &str) -> (wgpu::ComputePass<'static>, wgpu::CommandEncoder) {
    let mut encoder = device.encoder();
    let descriptor = wgpu::ComputePassDescriptor { label: Some(label), timestamp_writes: None };
    (encoder.begin_compute_pass(&descriptor).forget_lifetime(), encoder)
}
