//! How long work takes on the GPU.

use crate::context::{Backend, Context};
use crate::gemm::Gemm;
use crate::gpu::Device;
use crate::recorder::{AsRecorder, Recorder};
use crate::tensor::Tensor;
use tilewise_core::{Plan, Result};
use web_time::Instant;

/// How a time was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// The adapter's timestamps, from the start to the end of a compute pass. Browsers may round
    /// them, Chromium to 100 µs.
    Timestamps,
    /// The host's clock: the difference between submissions with many and with one repetition,
    /// divided by the number of additional repetitions. That number is large enough for a
    /// difference of 20 ms, but at most 1024: browsers round their clock, to a millisecond in
    /// Firefox.
    Difference,
    /// The host's clock, which browsers round: on the CPU executor, and for products that take
    /// several submissions.
    WallClock,
}

/// A time and how it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Timing {
    /// Seconds for one repetition.
    pub seconds: f64,
    /// How it was measured.
    pub method: Method,
}

/// How many repetitions more the longer submission has if there are no timestamps: at first, and at
/// most. Long work is repeated no more than needed, because drivers end a submission that takes
/// long.
const REPETITIONS: std::ops::RangeInclusive<u32> = 1..=1024;

/// Seconds by which the longer submission must take longer: far above the resolution of clocks in
/// browsers.
const DIFFERENCE: f64 = 20e-3;

impl Gemm {
    /// Like [`run`](Gemm::run), and gives the time that the product took on the GPU, without
    /// compiling its kernels. The product is computed more than once. This does not block; on an
    /// adapter without timestamps it waits for the GPU between polls. `run_timed_blocking` has an
    /// example.
    ///
    /// # Errors
    /// The errors of [`run`](Gemm::run).
    pub async fn run_timed(&self) -> Result<(Tensor, Timing)> {
        // A first run compiles, and warms caches. It has an output of its own, because with beta
        // each run changes the output.
        let trial = self.output()?;
        self.context().submit(|to| self.record_onto(to, &trial))?;
        let record = |to: &mut Recorder<'_>| self.record_onto(to, &trial);
        let timing = time_long(self.context(), seconds(&self.parts()?.plans()?), record).await?;
        Ok((self.run()?, timing))
    }

    /// Like [`run_timed`](Self::run_timed), blocking.
    ///
    /// ```
    /// use tilewise::{Context, Gemm, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let a = Tensor::upload(&ctx, &[1.0f32; 64 * 32], &[64, 32])?;
    /// let (c, timing) = Gemm::new(&a, &a.t()).run_timed_blocking()?;
    /// println!("{:.1} µs ({:?})", timing.seconds * 1e6, timing.method);
    /// assert_eq!(c.read_blocking::<f32>()?, [32.0; 64 * 64]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`run`](Gemm::run).
    #[cfg(not(target_family = "wasm"))]
    pub fn run_timed_blocking(&self) -> Result<(Tensor, Timing)> {
        pollster::block_on(self.run_timed())
    }
}

/// Times a compute pass into which `work` records, and does nothing else ([`Context::submit`]). On
/// the CPU executor it times the work itself.
///
/// # Errors
/// The errors of `work`.
pub async fn time(
    context: &Context,
    mut work: impl FnMut(&mut Recorder<'_>) -> Result<()>,
) -> Result<Timing> {
    let device = match &context.0.backend {
        Backend::Gpu(gpu) => &gpu.device,
        Backend::Cpu(_) => {
            let start = Instant::now();
            context.submit(&mut work)?;
            let seconds = start.elapsed().as_secs_f64();
            return Ok(Timing { seconds, method: Method::WallClock });
        }
    };
    let mut into =
        |pass: &mut wgpu::ComputePass<'_>| context.recording(|| work(&mut pass.as_recorder()));
    if device.features().contains(wgpu::Features::TIMESTAMP_QUERY) {
        let seconds = timestamps(device, 1, into).await?[0];
        return Ok(Timing { seconds, method: Method::Timestamps });
    }
    let mut one = submission(device, 1, &mut into).await?;
    let mut repetitions = *REPETITIONS.start();
    loop {
        let many = submission(device, 1 + repetitions, &mut into).await?;
        // If something held the only one up, the others would seem to take no time.
        one = one.min(submission(device, 1, &mut into).await?);
        let difference = (many - one).max(0.0);
        if difference >= DIFFERENCE || repetitions >= *REPETITIONS.end() {
            let seconds = difference / f64::from(repetitions);
            return Ok(Timing { seconds, method: Method::Difference });
        }
        repetitions *= 4;
    }
}

/// Like [`time`], for work with these plans. If the work takes longer than a submission may
/// ([`ContextOptions::max_submission_time`](crate::ContextOptions::max_submission_time)), it goes
/// to the GPU in several submissions, which are timed by the host's clock.
///
/// # Errors
/// The errors of [`time`].
#[cfg(feature = "planner")]
pub async fn time_planned(
    context: &Context,
    plans: &[Plan],
    work: impl FnMut(&mut Recorder<'_>) -> Result<()>,
) -> Result<Timing> {
    time_long(context, seconds(plans), work).await
}

/// The estimated time of these plans.
pub(crate) fn seconds(plans: &[Plan]) -> f64 {
    plans.iter().map(Plan::seconds).sum()
}

/// Like [`time`], for work that takes about this many seconds.
pub(crate) async fn time_long(
    context: &Context,
    seconds: f64,
    mut work: impl FnMut(&mut Recorder<'_>) -> Result<()>,
) -> Result<Timing> {
    match &context.0.backend {
        Backend::Gpu(gpu) if seconds > context.0.caps.max_submission_seconds => {
            let call = gpu.device.call();
            let fence = gpu.device.fence()?;
            let start = Instant::now();
            context.submit_as("tilewise timing", &mut work)?;
            gpu.device.cross(&fence, gpu.device.encoder(), call).await?;
            let seconds = start.elapsed().as_secs_f64();
            Ok(Timing { seconds, method: Method::WallClock })
        }
        _ => time(context, work).await,
    }
}

/// The times of `count` compute passes. `work` records into each of them. They run one after the
/// other without pauses, so that the device keeps the clock rate of steady work. Without
/// timestamps, this is [`time`], called `count` times. It is public for the benchmarks alone.
///
/// # Errors
/// The errors of [`time`].
#[doc(hidden)]
pub async fn series(
    context: &Context,
    count: usize,
    mut work: impl FnMut(&mut Recorder<'_>) -> Result<()>,
) -> Result<Vec<Timing>> {
    if let Backend::Gpu(gpu) = &context.0.backend
        && gpu.device.features().contains(wgpu::Features::TIMESTAMP_QUERY)
    {
        let mut all = Vec::with_capacity(count);
        while all.len() < count {
            let some = (count - all.len()).min(MOST_IN_A_QUERY_SET);
            let into = |pass: &mut wgpu::ComputePass<'_>| {
                context.recording(|| work(&mut pass.as_recorder()))
            };
            all.extend(timestamps(&gpu.device, some, into).await?);
        }
        let timing = |seconds| Timing { seconds, method: Method::Timestamps };
        return Ok(all.into_iter().map(timing).collect());
    }
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        all.push(time(context, &mut work).await?);
    }
    Ok(all)
}

/// Compute passes whose timestamps fit one query set: WebGPU gives it 4096.
const MOST_IN_A_QUERY_SET: usize = 2048;

/// Seconds between the timestamps at the two ends of each of `count` compute passes.
async fn timestamps(
    device: &Device,
    count: usize,
    mut work: impl FnMut(&mut wgpu::ComputePass<'_>) -> Result<()>,
) -> Result<Vec<f64>> {
    let size = 16 * count as u64;
    let call = device.call();
    let (queries, resolved, staging) = device.catch(|| {
        let (label, ty, count) =
            (Some("tilewise timing"), wgpu::QueryType::Timestamp, 2 * count as u32);
        let buffer = |usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label,
                size,
                usage,
                mapped_at_creation: false,
            })
        };
        (
            device.create_query_set(&wgpu::QuerySetDescriptor { label, ty, count }),
            buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC),
            buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST),
        )
    })?;
    for index in 0..count as u32 {
        let mut encoder = device.encoder();
        let timestamp_writes = Some(wgpu::ComputePassTimestampWrites {
            query_set: &queries,
            beginning_of_pass_write_index: Some(2 * index),
            end_of_pass_write_index: Some(2 * index + 1),
        });
        let descriptor =
            wgpu::ComputePassDescriptor { label: Some("tilewise timing"), timestamp_writes };
        work(&mut encoder.begin_compute_pass(&descriptor))?;
        device.submit(encoder)?;
    }
    let mut encoder = device.encoder();
    encoder.resolve_query_set(&queries, 0..2 * count as u32, &resolved, 0);
    encoder.copy_buffer_to_buffer(&resolved, 0, &staging, 0, size);
    let submission = device.submit(encoder)?;
    device.map(&staging, submission, call).await?;
    let view = staging.get_mapped_range(..).map_err(|error| device.failed(error))?;
    let ticks: Vec<u64> = bytemuck::pod_collect_to_vec(&view[..]);
    let period = f64::from(device.queue.get_timestamp_period()) * 1e-9;
    Ok(ticks.chunks_exact(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64 * period).collect())
}

/// Seconds on the host's clock for a submission with `repetitions` of the work.
async fn submission(
    device: &Device,
    repetitions: u32,
    mut work: impl FnMut(&mut wgpu::ComputePass<'_>) -> Result<()>,
) -> Result<f64> {
    let call = device.call();
    let fence = device.fence()?;
    let mut encoder = device.encoder();
    {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        for _ in 0..repetitions {
            work(&mut pass)?;
        }
    }
    let start = Instant::now();
    device.cross(&fence, encoder, call).await?;
    Ok(start.elapsed().as_secs_f64())
}
