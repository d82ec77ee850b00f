//! Opening a context: which adapter it takes, and which of its features it uses.

use crate::adapter::capture::Capture;
use crate::adapter::msl;
use crate::adapter::options::{ContextOptions, KERNEL_SOURCE, Switch};
use crate::adapter::{self, AdapterDescription};
use crate::context::choosing;
use crate::context::winners::Winners;
use crate::context::{Backend, Context, Inner, Preferences};
use crate::gpu::{Device, Gpu};
use crate::host::threads::Threads;
use std::sync::Arc;
use tilewise_core::{Caps, Cause, CoopMatrix, Error, Result};

impl Context {
    /// Opens the adapter that the environment names ([`ContextOptions::from_env`]), else the best
    /// hardware GPU, else the CPU executor, with one warning in the log. Compiled pipelines and
    /// tuned kernels are kept in the user's cache folder. Blocks until the device is there.
    ///
    /// # Errors
    /// [`Device`](crate::Error) when the environment names an adapter that is not there, or its
    /// driver refuses; `Misuse` for an environment variable that makes no sense.
    #[cfg(not(target_family = "wasm"))]
    pub fn new() -> Result<Context> {
        Self::request_blocking(&ContextOptions::from_env()?)
    }

    /// Like [`Context::new`], but an error without a GPU: the CPU executor does not take its place.
    ///
    /// # Errors
    /// [`Device`](crate::Error) without a hardware GPU, unless the environment names another
    /// adapter; otherwise as [`Context::new`].
    #[cfg(not(target_family = "wasm"))]
    pub fn gpu() -> Result<Context> {
        Self::request_blocking(&ContextOptions::from_env()?.require_gpu())
    }

    /// Like [`Context::request`], blocking. [`ContextOptions`] has an example.
    ///
    /// # Errors
    /// The errors of [`Context::request`].
    #[cfg(not(target_family = "wasm"))]
    pub fn request_blocking(options: &ContextOptions) -> Result<Context> {
        pollster::block_on(Self::request(options))
    }

    /// Opens a context on the adapter that `options` describes. Never blocks. Without a GPU, and in
    /// a browser page that has no WebGPU or may not use it, it is the CPU executor. In a page that
    /// computes on the calling thread: call it in a worker, or the page stands still meanwhile.
    ///
    /// # Errors
    /// [`Device`](crate::Error) when no adapter matches the given name, or a GPU is required and
    /// there is none (the message lists the adapters), or the driver refuses; `Misuse` when the
    /// [kernel](ContextOptions::kernel) of the options does not exist.
    pub async fn request(options: &ContextOptions) -> Result<Context> {
        choosing::known(options)?;
        let rank = |adapter: &&wgpu::Adapter| {
            adapter::rank(adapter.get_info().device_type, options.power_preference)
        };
        match options.adapter.as_deref() {
            Some("") => Err(Error::no_adapter("an empty name was asked for")),
            Some(name) if name.eq_ignore_ascii_case("cpu") => match options.require_gpu {
                true => Err(Error::no_adapter("a GPU is required, and cpu was asked for")),
                false => Self::on_cpu(options),
            },
            Some(name) => {
                let matching =
                    |adapter: &&wgpu::Adapter| AdapterDescription::of(adapter).bears(name);
                let mut seen = adapter::find(options.power_preference).await;
                if !seen.iter().any(|adapter| matching(&adapter)) {
                    seen.extend(adapter::find_gl().await);
                }
                match seen.iter().filter(matching).max_by_key(rank) {
                    Some(best) => Self::open(best, options).await,
                    None => {
                        Err(Error::no_adapter(format!("none matches {name:?}; {}", list(&seen))))
                    }
                }
            }
            None => {
                let wanted = |adapter: &&wgpu::Adapter| {
                    options.fallback_adapter || adapter::is_hardware(adapter)
                };
                let mut seen = adapter::find(options.power_preference).await;
                if !seen.iter().any(|adapter| wanted(&adapter)) {
                    seen.extend(adapter::find_gl().await);
                }
                match seen.iter().filter(wanted).max_by_key(rank) {
                    Some(best) => Self::open(best, options).await,
                    None if options.require_gpu => {
                        Err(Error::no_adapter(format!("no hardware GPU; {}", list(&seen))))
                    }
                    None => {
                        static SAID: std::sync::Once = std::sync::Once::new();
                        SAID.call_once(|| {
                            log::warn!("no hardware GPU found: products run on the CPU executor")
                        });
                        Self::on_cpu(options)
                    }
                }
            }
        }
    }

    async fn open(adapter: &wgpu::Adapter, options: &ContextOptions) -> Result<Context> {
        // SAFETY: experimental features may have flaws. The only one that is asked for is matrix
        // units, which only the library's kernels use: docs/safety.md. The caller gets
        // the device's handle, and wgpu checks the shaders that are made with it.
        let experimental = unsafe { wgpu::ExperimentalFeatures::enabled() };
        let (device, queue) = adapter
            .request_device(&adapter::device_descriptor(adapter, experimental))
            .await
            .map_err(|error| {
                let text = format!("no device: {}: {error}", adapter::info_of(adapter).name);
                Error::Device { text, source: Some(Cause::new(error)) }
            })?;
        let device = Device::new(device, queue);
        device.watch();
        let gpu = Gpu::new(device, options.pipeline_cache.as_deref());
        Ok(Self::on_gpu(gpu, Some(adapter), options))
    }

    /// A context on the given device and queue. The device may have any features and limits;
    /// [`device_descriptor`](crate::device_descriptor) names the best ones. Matrix units are used
    /// if the device has wgpu's features `EXPERIMENTAL_COOPERATIVE_MATRIX`, `SUBGROUP` and
    /// `SUBGROUP_BARRIER`; kernels in MSL are used on Metal if it has `PASSTHROUGH_SHADERS`.
    /// Options that choose an adapter are not read.
    ///
    /// The device keeps its own error handlers: a lost device is not noticed before it fails an
    /// operation, a readback or [`wait`](Self::wait). Open error scopes are left alone, too.
    /// Outside browsers this call waits for the work that the queue has been given.
    ///
    /// ```no_run
    /// # use tilewise::wgpu::Adapter;
    /// # async fn open(adapter: Adapter) -> Result<(), Box<dyn std::error::Error>> {
    /// use tilewise::{Context, ContextOptions, device_descriptor, wgpu};
    ///
    /// // SAFETY: no shader but tilewise's uses matrix units, which are the experimental feature.
    /// // With the disabled token products do without, and nothing is unsafe.
    /// let experimental = unsafe { wgpu::ExperimentalFeatures::enabled() };
    /// let descriptor = device_descriptor(&adapter, experimental);
    /// let (device, queue) = adapter.request_device(&descriptor).await?;
    /// let options = ContextOptions::default();
    /// let ctx = Context::from_wgpu(&adapter, device.clone(), queue.clone(), &options)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) when the device is not one of this adapter, or, on native, the
    /// queue not one of this device, and when the options' kernel does not exist; `DeviceLost` for
    /// a device that is lost or destroyed (on native).
    pub fn from_wgpu(
        adapter: &wgpu::Adapter,
        device: wgpu::Device,
        queue: wgpu::Queue,
        options: &ContextOptions,
    ) -> Result<Context> {
        choosing::known(options)?;
        let (own, other) = (adapter::named(device.adapter_info()), adapter::info_of(adapter));
        let kind = |info: &wgpu::AdapterInfo| {
            (info.backend, info.vendor, info.device, info.name.clone(), info.driver.clone())
        };
        if kind(&own) != kind(&other) {
            return Err(Error::Misuse(format!(
                "wrong context: the device is one of {} ({}), the adapter is {} ({})",
                own.name,
                adapter::backend_name(own.backend),
                other.name,
                adapter::backend_name(other.backend)
            )));
        }
        let device = Device::joined(device, queue)?;
        let gpu = Gpu::new(device, options.pipeline_cache.as_deref());
        Ok(Self::on_gpu(gpu, Some(adapter), options))
    }

    /// Like [`from_wgpu`](Self::from_wgpu), if the device's adapter is not at hand. Matrix units,
    /// and with them kernels in MSL, stay unused, because a device does not tell of them.
    ///
    /// # Errors
    /// The errors of [`from_wgpu`](Self::from_wgpu).
    pub fn from_device(
        device: wgpu::Device,
        queue: wgpu::Queue,
        options: &ContextOptions,
    ) -> Result<Context> {
        choosing::known(options)?;
        let device = Device::joined(device, queue)?;
        Ok(Self::on_gpu(Gpu::new(device, options.pipeline_cache.as_deref()), None, options))
    }

    /// A context on a device. `adapter` is the device's adapter, if it is at hand.
    fn on_gpu(gpu: Gpu, adapter: Option<&wgpu::Adapter>, options: &ContextOptions) -> Context {
        let info = gpu.device.adapter_info();
        let coop = adapter.map(adapter::coop_of);
        let coop_off = why_off(&info, gpu.device.features(), coop.as_deref(), options.matrix_units);
        if let (Some(why), Switch::Auto) = (coop_off, options.matrix_units) {
            log::info!("matrix units are off: {why}");
        }
        let coop = coop.unwrap_or_default();
        let library =
            msl::library(options.msl, msl::suits(info.backend, gpu.device.features(), &coop));
        let coop = if coop_off.is_none() { coop } else { Vec::new() };
        let caps = adapter::caps(&info, gpu.device.features(), &gpu.device.limits(), coop);
        let msl_version = if msl::has_msl(library) { msl::version(&gpu.device) } else { None };
        let time = options.max_submission_time.map(|time| time.as_secs_f64());
        let caps = Caps {
            coop_off: coop_off.or(caps.coop_off),
            msl_version,
            max_scratch_bytes: options.max_scratch_bytes.unwrap_or(caps.max_scratch_bytes),
            max_submission_seconds: time.unwrap_or(caps.max_submission_seconds),
            ..caps
        };
        let winners = Winners::open(options.tuned.as_deref(), &info, library);
        let preferences = preferences(options, winners);
        let _capture =
            options.metal_capture.as_deref().and_then(|path| Capture::start(&gpu.device, path));
        Context(Arc::new(Inner {
            backend: Backend::Gpu(Box::new(gpu)),
            caps,
            preferences,
            library,
            #[cfg(feature = "custom-kernels")]
            offered: adapter.map(wgpu::Adapter::features),
            _capture,
        }))
    }

    /// A context that computes on the CPU, with the same results up to rounding.
    pub fn cpu() -> Context {
        Self::cpu_as(adapter::cpu_caps())
    }

    /// The CPU executor with the caps of a device, for tests of the texts that the device would
    /// get.
    #[doc(hidden)]
    pub fn cpu_as(caps: Caps) -> Context {
        Self::on_cpu_as(&ContextOptions::default(), caps, Threads::default())
    }

    fn on_cpu(options: &ContextOptions) -> Result<Context> {
        Ok(Self::on_cpu_as(options, adapter::cpu_caps(), Threads::new(options.threads)?))
    }

    fn on_cpu_as(options: &ContextOptions, caps: Caps, threads: Threads) -> Context {
        // The CPU's one kernel is in no library. This library has the names that calls may give.
        let preferences = preferences(options, Winners::of_cpu(msl::ALL));
        if let Some(path) = &options.metal_capture {
            Capture::missing(path);
        }
        Context(Arc::new(Inner {
            backend: Backend::Cpu(threads),
            caps,
            preferences,
            library: msl::ALL,
            #[cfg(feature = "custom-kernels")]
            offered: None,
            _capture: None,
        }))
    }
}

/// Why kernels in WGSL leave matrix units unused, if the device has some or may have some. `coop`
/// is the adapter's answer, if it was asked.
fn why_off(
    info: &wgpu::AdapterInfo,
    features: wgpu::Features,
    coop: Option<&[CoopMatrix]>,
    wanted: Switch,
) -> Option<&'static str> {
    let trusted = adapter::trusts_matrix_units(info.backend, info.vendor);
    match (coop, wanted) {
        (Some([]), _) => None,
        (None, _) => {
            Some("only an adapter lists them; give it to Context::from_wgpu with the device")
        }
        (_, Switch::Off) => Some("ContextOptions::matrix_units, TILEWISE_MATRIX_UNITS=off"),
        _ if !features.contains(adapter::MATRIX_UNITS) => Some(
            "the device was made without wgpu's features EXPERIMENTAL_COOPERATIVE_MATRIX, SUBGROUP \
             and SUBGROUP_BARRIER, for which device_descriptor() asks with \
             ExperimentalFeatures::enabled()",
        ),
        (_, Switch::Auto) if !trusted => Some(
            "unproven with this driver; ContextOptions::matrix_units, TILEWISE_MATRIX_UNITS=on",
        ),
        _ => None,
    }
}

/// The kernels that the options prefer. Logs what they force or switch off.
fn preferences(options: &ContextOptions, winners: Winners) -> Preferences {
    if let Some(kernel) = &options.kernel {
        log::info!("every product uses kernel {kernel} ({KERNEL_SOURCE})");
    }
    if options.matrix_units == Switch::Off {
        log::info!(
            "matrix units stay unused (ContextOptions::matrix_units, TILEWISE_MATRIX_UNITS)"
        );
    }
    match options.msl {
        Switch::Off => {
            log::info!("kernels in MSL stay unused (ContextOptions::msl, TILEWISE_MSL)")
        }
        Switch::On if !msl::has_msl(msl::ALL) => {
            log::info!("there are no kernels in MSL: built without the feature msl")
        }
        _ => {}
    }
    Preferences { kernel: options.kernel.clone(), winners }
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
