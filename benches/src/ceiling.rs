//! A device's ceilings, measured: bandwidth by a copy, f32 arithmetic by chains of fused multiply-adds.

use crate::measure::{WARM_UP, median};
use tilewise::{Context, Error, Result, timing, wgpu};

/// The two ceilings of a roofline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    /// f32 operations per second, a fused multiply-add counted as two.
    pub flops: f64,
    /// Bytes per second, read and written.
    pub bandwidth: f64,
}

impl Ceiling {
    /// The shortest time for this many operations and bytes.
    pub fn seconds(&self, flops: f64, bytes: f64) -> f64 {
        (flops / self.flops).max(bytes / self.bandwidth)
    }
}

/// Measures both ceilings on a GPU.
///
/// # Errors
/// `WrongContext` on the CPU executor; those of the device.
pub fn measure(ctx: &Context) -> Result<Ceiling> {
    let device = ctx.device().ok_or_else(|| Error::WrongContext("the CPU executor has no measured ceilings".into()))?;
    // Several times any cache.
    let bytes = (1u64 << 29).min(ctx.caps().max_binding_bytes / 16 * 16).min(ctx.caps().max_buffer_bytes);
    let software = ctx.caps().class == tilewise::tilewise_core::DeviceClass::Cpu;
    let bytes = if software { bytes.min(1 << 26) } else { bytes };
    let buffer = || {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
        device.create_buffer(&wgpu::BufferDescriptor { label: None, size: bytes, usage, mapped_at_creation: false })
    };
    let (source, target) = (buffer(), buffer());
    // Neither zeros, which some chips move and multiply faster, nor anything that grows out of range.
    let noise: Vec<f32> =
        (0u32..1 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 25) as f32).collect();
    if let Some(queue) = ctx.queue() {
        for at in (0..bytes).step_by(size_of_val(&noise[..])) {
            let part = &bytemuck::cast_slice::<f32, u8>(&noise)[..size_of_val(&noise[..]).min((bytes - at) as usize)];
            queue.write_buffer(&source, at, part);
        }
    }
    let copy = Probe::new(device, include_str!("../shaders/copy.wgsl"), [&source, &target]);
    let groups = 8192.min((bytes / 4096).max(1) as u32);
    let bandwidth = 2.0 * bytes as f64 / copy.seconds(ctx, groups)?;
    let fma = Probe::new(device, include_str!("../shaders/fma.wgsl"), [&source, &target]);
    let groups = if software { 32 } else { 8192 };
    // fma.wgsl: 512 rounds of 4 steps, 16 chains, two operations each.
    let flops = f64::from(groups) * 256.0 * 2048.0 * 32.0 / fma.seconds(ctx, groups)?;
    Ok(Ceiling { flops, bandwidth })
}

struct Probe {
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
}

impl Probe {
    fn new(device: &wgpu::Device, text: &str, buffers: [&wgpu::Buffer; 2]) -> Self {
        let source = wgpu::ShaderSource::Wgsl(text.into());
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: Default::default(),
            cache: None,
        });
        let entry = |binding: usize| wgpu::BindGroupEntry {
            binding: binding as u32,
            resource: buffers[binding].as_entire_binding(),
        };
        let layout = pipeline.get_bind_group_layout(0);
        let entries = [entry(0), entry(1)];
        let group =
            device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries });
        Probe { pipeline, group }
    }

    fn seconds(&self, ctx: &Context, groups: u32) -> Result<f64> {
        let (mut samples, mut warm) = (Vec::new(), 0.0);
        while warm < WARM_UP || samples.len() < 7 {
            let timed = pollster::block_on(timing::time(ctx, |pass| {
                if let Some(pass) = pass {
                    pass.set_pipeline(&self.pipeline);
                    pass.set_bind_group(0, &self.group, &[]);
                    pass.dispatch_workgroups(groups, 1, 1);
                }
                Ok(())
            }))?;
            warm += timed.seconds;
            samples.push(timed.seconds);
        }
        let last = samples.len() - 5;
        Ok(median(&mut samples[last..]))
    }
}
