//! Opening a context: which adapter, and what of it is used.

use crate::adapter::{self, AdapterDescription};
use crate::capture::Capture;
use crate::context::{Backend, Context, Inner, Preferences};
use crate::gpu::{Device, Gpu};
use crate::msl;
use crate::options::{ContextOptions, KERNEL_SOURCE};
use crate::winners::Winners;
use std::sync::Arc;
use tilewise_core::{Caps, CoopMatrix, DeviceClass, Error, Result};

impl Context {
    /// The adapter that the environment names ([`ContextOptions::default`]), else the best hardware
    /// GPU, else the CPU executor, which the log then says once. Blocks until the device is there.
    ///
    /// # Errors
    /// `NoAdapter` when the environment names one that is not there, `NoDevice` when its driver
    /// refuses.
    #[cfg(not(target_family = "wasm"))]
    pub fn new() -> Result<Context> {
        Self::with_options(&ContextOptions::default())
    }

    /// As [`Context::request`], blocking.
    ///
    /// # Errors
    /// `NoAdapter`, `NoDevice`.
    #[cfg(not(target_family = "wasm"))]
    pub fn with_options(options: &ContextOptions) -> Result<Context> {
        pollster::block_on(Self::request(options))
    }

    /// A context on the adapter that `options` describes. Never blocks.
    ///
    /// # Errors
    /// `NoAdapter` when a name was given and no adapter bears it (the message lists those that are
    /// there), `NoDevice` when the driver refuses.
    pub async fn request(options: &ContextOptions) -> Result<Context> {
        match options.adapter.as_deref() {
            Some("") => Err(Error::NoAdapter("an empty name was asked for".into())),
            Some(name) if name.eq_ignore_ascii_case("cpu") => Ok(Self::on_cpu(options)),
            Some(name) => {
                let matching =
                    |adapter: &&wgpu::Adapter| AdapterDescription::of(adapter).bears(name);
                let mut seen = adapter::find().await;
                if !seen.iter().any(|adapter| matching(&adapter)) {
                    seen.extend(adapter::find_gl().await);
                }
                match seen.iter().filter(matching).max_by_key(|adapter| rank(adapter)) {
                    Some(best) => Self::open(best, options).await,
                    None => {
                        Err(Error::NoAdapter(format!("none matches {name:?}; {}", list(&seen))))
                    }
                }
            }
            None => {
                let hardware = |adapter: &&wgpu::Adapter| {
                    adapter.get_info().device_type != wgpu::DeviceType::Cpu
                };
                let mut seen = adapter::find().await;
                if !seen.iter().any(|adapter| hardware(&adapter)) {
                    seen.extend(adapter::find_gl().await);
                }
                match seen.iter().filter(hardware).max_by_key(|adapter| rank(adapter)) {
                    Some(best) => Self::open(best, options).await,
                    None => {
                        static SAID: std::sync::Once = std::sync::Once::new();
                        SAID.call_once(|| {
                            log::warn!("no hardware GPU found: products run on the CPU executor")
                        });
                        Ok(Self::on_cpu(options))
                    }
                }
            }
        }
    }

    async fn open(adapter: &wgpu::Adapter, options: &ContextOptions) -> Result<Context> {
        let (device, queue) = adapter
            .request_device(&adapter::device_descriptor(adapter))
            .await
            .map_err(|error| Error::NoDevice(format!("{}: {error}", adapter.get_info().name)))?;
        let device = Device::new(device, queue);
        device.watch();
        let gpu = Gpu::new(device, options.pipeline_cache.as_deref());
        Ok(Self::on_gpu(gpu, adapter::coop_of(adapter), options))
    }

    /// A context on a device and queue of the caller's, with any features and limits.
    /// [`device_descriptor`](crate::device_descriptor) names the best ones. The device's error
    /// handlers are left as they are, so that a lost device shows only where it fails an operation.
    /// Matrix units, and with them kernels in MSL, stay unused, because a device does not tell of
    /// them: [`from_adapter`](Self::from_adapter) does. Of the environment, what [`ContextOptions`]
    /// says of kernels, matrix units and MSL holds here too; files are neither read nor written.
    pub fn from_wgpu(device: wgpu::Device, queue: wgpu::Queue) -> Context {
        Self::on_gpu(
            Gpu::new(Device::new(device, queue), None),
            Vec::new(),
            &ContextOptions::without_files(),
        )
    }

    /// As [`from_wgpu`](Self::from_wgpu), on a device of this adapter. Its matrix units are used if
    /// the device has wgpu's feature `EXPERIMENTAL_COOPERATIVE_MATRIX`; kernels in MSL on Metal if
    /// it has `PASSTHROUGH_SHADERS`. [`device_descriptor`](crate::device_descriptor) asks for both.
    pub fn from_adapter(
        adapter: &wgpu::Adapter,
        device: wgpu::Device,
        queue: wgpu::Queue,
    ) -> Context {
        Self::on_gpu(
            Gpu::new(Device::new(device, queue), None),
            adapter::coop_of(adapter),
            &ContextOptions::without_files(),
        )
    }

    fn on_gpu(gpu: Gpu, coop: Vec<CoopMatrix>, options: &ContextOptions) -> Context {
        let info = gpu.device.adapter_info();
        let trusted = adapter::trusts_matrix_units(info.backend, info.vendor);
        if options.matrix_units.is_none() && !trusted && !coop.is_empty() {
            log::info!(
                "matrix units stay unused: unproven with this driver (ContextOptions::matrix_units, TILEWISE_NO_COOP=0)"
            );
        }
        let library =
            msl::library(options.msl, msl::suits(info.backend, gpu.device.features(), &coop));
        let coop = if options.matrix_units.unwrap_or(trusted) { coop } else { Vec::new() };
        let caps = adapter::caps(&info, gpu.device.features(), &gpu.device.limits(), coop);
        let msl_version = if msl::has_msl(library) { msl::version(&gpu.device) } else { None };
        let max_scratch_bytes = options.max_scratch_bytes.unwrap_or(caps.max_scratch_bytes);
        let caps = Caps { msl_version, max_scratch_bytes, ..caps };
        let winners = options
            .tuned
            .as_deref()
            .map(|folder| Winners::open(folder, &info, library))
            .unwrap_or_default();
        let preferences = preferences(options, winners);
        let _capture =
            options.metal_capture.as_deref().and_then(|path| Capture::start(&gpu.device, path));
        Context(Arc::new(Inner {
            backend: Backend::Gpu(Box::new(gpu)),
            caps,
            preferences,
            library,
            _capture,
        }))
    }

    /// A context that computes on the CPU, with the same results up to rounding.
    pub fn cpu() -> Context {
        Self::on_cpu(&ContextOptions::without_files())
    }

    fn on_cpu(options: &ContextOptions) -> Context {
        let caps = Caps {
            name: "CPU executor".into(),
            class: DeviceClass::Cpu,
            max_binding_bytes: isize::MAX as u64,
            max_buffer_bytes: isize::MAX as u64,
            ..Caps::webgpu_default()
        };
        let preferences = preferences(options, Winners::default());
        if let Some(path) = &options.metal_capture {
            Capture::missing(path);
        }
        // Its one kernel is in no library; what a call may name is in this one.
        Context(Arc::new(Inner {
            backend: Backend::Cpu,
            caps,
            preferences,
            library: msl::ALL,
            _capture: None,
        }))
    }
}

/// What the options prefer; the log tells of it.
fn preferences(options: &ContextOptions, winners: Winners) -> Preferences {
    if let Some(kernel) = &options.kernel {
        log::info!("every product uses kernel {kernel} ({KERNEL_SOURCE})");
    }
    if options.matrix_units == Some(false) {
        log::info!("matrix units stay unused (ContextOptions::matrix_units, TILEWISE_NO_COOP)");
    }
    match options.msl {
        Some(false) => {
            log::info!("kernels in MSL stay unused (ContextOptions::msl, TILEWISE_NO_MSL)")
        }
        Some(true) if !msl::has_msl(msl::ALL) => {
            log::info!("there are no kernels in MSL: built without the feature msl")
        }
        _ => {}
    }
    Preferences { kernel: options.kernel.clone(), winners }
}

/// Hardware before software, memory of its own before shared.
fn rank(adapter: &wgpu::Adapter) -> u32 {
    match adapter.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 4,
        wgpu::DeviceType::IntegratedGpu => 3,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 1,
        wgpu::DeviceType::Cpu => 0,
    }
}

fn list(adapters: &[wgpu::Adapter]) -> String {
    if adapters.is_empty() {
        return "no adapter was found, only cpu".into();
    }
    let described = adapters.iter().map(AdapterDescription::of);
    let names: Vec<_> =
        described.map(|adapter| format!("{} ({})", adapter.name, adapter.backend)).collect();
    format!("there are {}, and cpu", names.join(", "))
}
