//! A device's ceilings. They are given, looked up by the chip's name, or measured: bandwidth by a
//! copy, f32 arithmetic by chains of fused multiply-adds.

use crate::chips::{self, Chip};
use crate::measure::{WARM_UP, is_software, median};
use serde::{Deserialize, Serialize};
use tilewise::{Context, Error, Result, timing, wgpu};

/// The ceilings of a roofline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// f32 operations per second, 10^12, a fused multiply-add counted as two; 0 when unknown.
    pub peak_tflops: f64,
    /// f16 and bf16 operations per second, 10^12; absent when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_tflops_f16: Option<f64>,
    /// 10^9 bytes per second, read and written; 0 when unknown.
    pub peak_gbs: f64,
    /// The source of the ceilings, in words. Records older than this field hold measured ceilings.
    #[serde(default = "measured", skip_serializing_if = "String::is_empty")]
    pub peaks_from: String,
}

fn measured() -> String {
    "measured".into()
}

/// Ceilings that somebody states.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Given {
    /// Ceiling of f32 arithmetic in TFLOP/s; by default Apple's figure for the chip, or measured
    #[arg(long, value_parser = positive)]
    pub peak_tflops: Option<f64>,
    /// Ceiling of f16 and bf16 arithmetic in TFLOP/s; by default that of f32
    #[arg(long, value_parser = positive)]
    pub peak_tflops_f16: Option<f64>,
    /// Ceiling of bandwidth in GB/s, read and written; by default Apple's figure for the chip, or
    /// measured
    #[arg(long, value_parser = positive)]
    pub peak_gbs: Option<f64>,
}

fn positive(text: &str) -> std::result::Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| format!("{text:?} is no rate: a number above 0 is wanted"))
}

impl Given {
    /// Replaces the ceilings of `ceiling` that are given here.
    pub fn replace(&self, ceiling: &mut Ceiling) {
        let mut named = Vec::new();
        if let Some(peak) = self.peak_tflops {
            // If f16 runs at f32's rate, it gets f32's new ceiling.
            if ceiling.peak_tflops_f16 == Some(ceiling.peak_tflops) {
                ceiling.peak_tflops_f16 = Some(peak);
            }
            ceiling.peak_tflops = peak;
            named.push("f32");
        }
        if let Some(peak) = self.peak_tflops_f16 {
            ceiling.peak_tflops_f16 = Some(peak);
            named.push("f16");
        }
        if let Some(peak) = self.peak_gbs {
            ceiling.peak_gbs = peak;
            named.push("bandwidth");
        }
        if !named.is_empty() {
            let separator = if ceiling.peaks_from.is_empty() { "" } else { "; " };
            ceiling.peaks_from += &format!("{separator}given: {}", named.join(", "));
        }
    }
}

impl Ceiling {
    /// The ceilings of a device: the given ones, else those of its name, else measured ones. The
    /// CPU executor has given ones only.
    ///
    /// # Errors
    /// The errors of the device; `Unsupported` when it is too fast for the host's clock and has no
    /// timestamps.
    pub fn of(ctx: &Context, given: &Given) -> Result<Ceiling> {
        let all_given = given.peak_tflops.is_some() && given.peak_gbs.is_some();
        let mut ceiling = match chips::find(ctx.adapter_name()) {
            Some(Chip { name, tflops, gbs }) => Ceiling {
                peak_tflops: tflops,
                peak_tflops_f16: Some(tflops),
                peak_gbs: gbs,
                peaks_from: format!(
                    "figures for {name} with the most cores sold under that name: upper bounds, \
                     where this one has fewer"
                ),
            },
            None if all_given => Ceiling::default(),
            None if ctx.is_cpu() => Ceiling {
                peaks_from: "unknown: the CPU executor is not measured".into(),
                ..Ceiling::default()
            },
            None => measure(ctx)?,
        };
        given.replace(&mut ceiling);
        Ok(ceiling)
    }

    /// Whether the ceilings are known, so that there is a roofline.
    pub fn is_known(&self) -> bool {
        self.peak_tflops > 0.0 && self.peak_gbs > 0.0
    }

    /// The ceiling of arithmetic for a dtype, 10^12 operations per second. It is f32's if the
    /// dtype's own is not known.
    pub fn peak(&self, dtype: &str) -> f64 {
        self.peak_tflops_f16.filter(|_| dtype != "f32").unwrap_or(self.peak_tflops)
    }

    /// Operations per byte from which a dtype's products are bound by arithmetic; 0 when unknown.
    pub fn ridge(&self, dtype: &str) -> f64 {
        if self.is_known() { 1e3 * self.peak(dtype) / self.peak_gbs } else { 0.0 }
    }
}

/// Measures what a GPU reaches.
fn measure(ctx: &Context) -> Result<Ceiling> {
    let device = ctx.device().ok_or_else(|| {
        Error::Misuse("wrong context: the CPU executor has no measured ceilings".into())
    })?;
    // The buffer is several times as large as any cache.
    let bytes =
        (1u64 << 29).min(ctx.caps().max_binding_bytes / 16 * 16).min(ctx.caps().max_buffer_bytes);
    let software = is_software(ctx);
    let bytes = if software { bytes.min(1 << 26) } else { bytes };
    let buffer = || {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
        device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: bytes,
            usage,
            mapped_at_creation: false,
        })
    };
    let (source, target) = (buffer(), buffer());
    // The data are not zeros, which some chips move and multiply faster, and they do not grow out
    // of range.
    let noise: Vec<f32> = (0u32..1 << 20)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 25) as f32)
        .collect();
    if let Some(queue) = ctx.queue() {
        for at in (0..bytes).step_by(size_of_val(&noise[..])) {
            let part = &bytemuck::cast_slice::<f32, u8>(&noise)
                [..size_of_val(&noise[..]).min((bytes - at) as usize)];
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
    Ok(Ceiling {
        peak_tflops: flops * 1e-12,
        peak_tflops_f16: None,
        peak_gbs: bandwidth * 1e-9,
        peaks_from: "measured: chains of fused multiply-adds, and a copy".into(),
    })
}

struct Probe {
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
}

impl Probe {
    fn new(device: &wgpu::Device, text: &str, buffers: [&wgpu::Buffer; 2]) -> Self {
        let source = wgpu::ShaderSource::Wgsl(text.into());
        let module =
            device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
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
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &layout,
            entries: &entries,
        });
        Probe { pipeline, group }
    }

    fn seconds(&self, ctx: &Context, groups: u32) -> Result<f64> {
        let (mut samples, mut warm) = (Vec::new(), 0.0);
        let enough = if is_software(ctx) { 0.0 } else { WARM_UP };
        while warm < enough || samples.len() < 7 {
            let timed = pollster::block_on(timing::time(ctx, |to| {
                to.dispatch(|pass| {
                    pass.set_pipeline(&self.pipeline);
                    pass.set_bind_group(0, &self.group, &[]);
                    pass.dispatch_workgroups(groups, 1, 1);
                })
            }))?;
            warm += timed.seconds;
            samples.push(timed.seconds);
        }
        let last = samples.len() - 5;
        match median(&mut samples[last..]) {
            0.0 => Err(Error::Unsupported(
                "too short for the host's clock: give the ceilings with --peak-tflops and \
                 --peak-gbs"
                    .into(),
            )),
            seconds => Ok(seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_goes_before_what_is_known() {
        let given = |f32: Option<f64>, f16: Option<f64>, gbs: Option<f64>| Given {
            peak_tflops: f32,
            peak_tflops_f16: f16,
            peak_gbs: gbs,
        };
        let cpu = Context::cpu();
        let of = |given: Given| Ceiling::of(&cpu, &given).unwrap();
        assert!(
            !of(Given::default()).is_known() && of(Given::default()).peaks_from.contains("unknown")
        );
        let half = of(given(Some(10.0), Some(20.0), Some(100.0)));
        assert_eq!(
            (half.ridge("f32"), half.ridge("bf16"), &half.peaks_from[..]),
            (100.0, 200.0, "given: f32, f16, bandwidth")
        );
        let mut chip = Ceiling {
            peak_tflops: 2.6,
            peak_tflops_f16: Some(2.6),
            peak_gbs: 68.0,
            peaks_from: "M1".into(),
        };
        given(Some(2.0), None, None).replace(&mut chip);
        assert_eq!(
            (chip.peak("f32"), chip.peak("f16"), chip.peak_gbs, &chip.peaks_from[..]),
            (2.0, 2.0, 68.0, "M1; given: f32")
        );
    }
}
