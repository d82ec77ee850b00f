//! A device to compute on, with everything worth keeping between calls.

use crate::adapter::{self, AdapterDescription};
use crate::capture::Capture;
use crate::gemm::Gemm;
use crate::gpu::{Asked, Gpu, Prepared};
use crate::msl;
use crate::overrides::Preferences;
use crate::tensor::Tensor;
use crate::tuner::Winners;
use std::path::PathBuf;
use std::sync::Arc;
use tilewise_core::kernel::Library;
use tilewise_core::plan::{Choice, Forced};
use tilewise_core::{Caps, CoopMatrix, DeviceClass, Error, Plan, Problem, Result};

/// Which device to take, and how to treat it.
#[derive(Clone, Debug)]
pub struct ContextOptions {
    /// Part of an adapter's name (any case), the name of a backend (`vulkan`, `metal`, `dx12`, `gl`), both (`vulkan:llvmpipe`), or `cpu` for the CPU
    /// executor. Absent: the best hardware GPU, and the CPU executor when there is none. `TILEWISE_ADAPTER`.
    pub adapter: Option<String>,
    /// Folder in which compiled pipelines are kept between runs, where the backend can (Vulkan); absent: nowhere. `TILEWISE_CACHE_DIR`, by default
    /// the user's cache folder; empty: nowhere.
    pub pipeline_cache: Option<PathBuf>,
    /// Folder with the file of this adapter's tuned kernels, which is read when the context opens and written by [`Context::tune`]; absent: they
    /// are kept for the life of the context only. As `pipeline_cache`, and absent with `TILEWISE_NO_TUNED=1`.
    pub tuned: Option<PathBuf>,
    /// The kernel of every product that does not name its own, as [`Gemm::kernel`] takes it; a product that it cannot compute is an error.
    /// `TILEWISE_KERNEL`.
    pub kernel: Option<String>,
    /// Whether kernels in WGSL may use the matrix units; those in MSL do in any case. Absent: where they rely on nothing unproven, which is on Metal, and
    /// through Vulkan with the drivers that the suite has passed on, NVIDIA's so far. `TILEWISE_NO_COOP=1`: no; `TILEWISE_NO_COOP=0`: wherever there are some.
    pub matrix_units: Option<bool>,
    /// Whether kernels in MSL may be used beside those in WGSL. Absent: on Metal, where the GPU has simdgroup matrices. `TILEWISE_NO_MSL=1`: no;
    /// `TILEWISE_NO_MSL=0`: on every GPU, where what does not compile is computed in WGSL after all, with a warning in the log. Without the feature `msl` there
    /// are none.
    pub msl: Option<bool>,
    /// File `NAME.gputrace` into which Metal captures what the context submits, for Xcode: from its opening to its end, and only for a process that has
    /// MTL_CAPTURE_ENABLED=1 in its environment. Metal writes over no file, and captures for one context at a time; where it does not, the log says why.
    /// `TILEWISE_METAL_CAPTURE`.
    pub metal_capture: Option<PathBuf>,
}

impl ContextOptions {
    /// The defaults, with the adapter named here. See [`ContextOptions::adapter`].
    pub fn adapter(name: impl Into<String>) -> Self {
        ContextOptions { adapter: Some(name.into()), ..ContextOptions::default() }
    }

    /// The defaults, without files.
    fn without_files() -> Self {
        ContextOptions { pipeline_cache: None, tuned: None, metal_capture: None, ..ContextOptions::default() }
    }
}

pub(crate) enum Backend {
    Cpu,
    Gpu(Box<Gpu>),
}

pub(crate) struct Inner {
    pub(crate) backend: Backend,
    pub(crate) caps: Caps,
    pub(crate) preferences: Preferences,
    library: &'static Library,
    _capture: Option<Capture>,
}

/// A plan, and what it was chosen from.
struct Planned {
    plan: Plan,
    library: &'static Library,
    /// Why that has no MSL, where there is some for this device.
    refused: Option<Arc<str>>,
}

/// A device, its queue, and what is kept between calls: plans, compiled pipelines, bind groups, uniform and scratch buffers. Cheap to clone; clones are the
/// same context.
#[derive(Clone)]
pub struct Context(pub(crate) Arc<Inner>);

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Context").field(&self.adapter_name()).field(&self.backend_name()).finish()
    }
}

impl Context {
    /// The adapter that the environment names ([`ContextOptions::default`]), else the best hardware GPU, else the CPU executor, which the log
    /// then says once. Blocks until the device is there.
    ///
    /// # Errors
    /// `NoAdapter` when the environment names one that is not there, `NoDevice` when its driver refuses.
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
    /// `NoAdapter` when a name was given and no adapter bears it (the message lists those that are there), `NoDevice` when the driver refuses.
    pub async fn request(options: &ContextOptions) -> Result<Context> {
        match options.adapter.as_deref() {
            Some("") => Err(Error::NoAdapter("an empty name was asked for".into())),
            Some(name) if name.eq_ignore_ascii_case("cpu") => Ok(Self::on_cpu(options)),
            Some(name) => {
                let matching = |adapter: &&wgpu::Adapter| AdapterDescription::of(adapter).bears(name);
                let mut seen = adapter::find().await;
                if !seen.iter().any(|adapter| matching(&adapter)) {
                    seen.extend(adapter::find_gl().await);
                }
                match seen.iter().filter(matching).max_by_key(|adapter| rank(adapter)) {
                    Some(best) => Self::open(best, options).await,
                    None => Err(Error::NoAdapter(format!("none matches {name:?}; {}", list(&seen)))),
                }
            }
            None => {
                let hardware = |adapter: &&wgpu::Adapter| adapter.get_info().device_type != wgpu::DeviceType::Cpu;
                let mut seen = adapter::find().await;
                if !seen.iter().any(|adapter| hardware(&adapter)) {
                    seen.extend(adapter::find_gl().await);
                }
                match seen.iter().filter(hardware).max_by_key(|adapter| rank(adapter)) {
                    Some(best) => Self::open(best, options).await,
                    None => {
                        static SAID: std::sync::Once = std::sync::Once::new();
                        SAID.call_once(|| log::warn!("no hardware GPU found: products run on the CPU executor"));
                        Ok(Self::on_cpu(options))
                    }
                }
            }
        }
    }

    async fn open(adapter: &wgpu::Adapter, options: &ContextOptions) -> Result<Context> {
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("tilewise"),
            required_features: adapter::required_features(adapter),
            required_limits: adapter::required_limits(adapter),
            experimental_features: adapter::experimental_features(),
            ..Default::default()
        };
        let (device, queue) = adapter
            .request_device(&descriptor)
            .await
            .map_err(|error| Error::NoDevice(format!("{}: {error}", adapter.get_info().name)))?;
        let gpu = Gpu::new(device, queue, options.pipeline_cache.as_deref());
        gpu.watch();
        Ok(Self::on_gpu(gpu, adapter::coop_of(adapter), options))
    }

    /// A context on a device and queue of the caller's, made with whatever features and limits; [`required_features`](crate::required_features) and
    /// [`required_limits`](crate::required_limits) say what is best asked for. The device's error handlers are left as they are, so that a lost device
    /// shows only where it fails an operation. Matrix units, and with them kernels in MSL, stay unused, because a device does not tell of them:
    /// [`from_adapter`](Self::from_adapter) does. Of the environment, what [`ContextOptions`] says of kernels, matrix units and MSL holds here too; files are
    /// neither read nor written.
    pub fn from_wgpu(device: wgpu::Device, queue: wgpu::Queue) -> Context {
        Self::on_gpu(Gpu::new(device, queue, None), Vec::new(), &ContextOptions::without_files())
    }

    /// As [`from_wgpu`](Self::from_wgpu), on a device of this adapter. Its matrix units are used if the device has wgpu's feature
    /// `EXPERIMENTAL_COOPERATIVE_MATRIX`, which [`required_features`](crate::required_features) names and
    /// [`experimental_features`](crate::experimental_features) permits; kernels in MSL on Metal if it has `PASSTHROUGH_SHADERS`.
    pub fn from_adapter(adapter: &wgpu::Adapter, device: wgpu::Device, queue: wgpu::Queue) -> Context {
        Self::on_gpu(Gpu::new(device, queue, None), adapter::coop_of(adapter), &ContextOptions::without_files())
    }

    fn on_gpu(gpu: Gpu, coop: Vec<CoopMatrix>, options: &ContextOptions) -> Context {
        let info = gpu.device.adapter_info();
        let trusted = adapter::trusts_matrix_units(info.backend, info.vendor);
        if options.matrix_units.is_none() && !trusted && !coop.is_empty() {
            log::info!(
                "matrix units stay unused: unproven with this driver (ContextOptions::matrix_units, TILEWISE_NO_COOP=0)"
            );
        }
        let library = msl::library(options.msl, msl::suits(info.backend, gpu.device.features(), &coop));
        let coop = if options.matrix_units.unwrap_or(trusted) { coop } else { Vec::new() };
        let caps = adapter::caps(&info, gpu.device.features(), &gpu.device.limits(), coop);
        let winners = options.tuned.as_deref().map(|folder| Winners::open(folder, &info, library)).unwrap_or_default();
        let preferences = Preferences::new(options, winners);
        let _capture = options.metal_capture.as_deref().and_then(|path| Capture::start(&gpu.device, path));
        Context(Arc::new(Inner { backend: Backend::Gpu(Box::new(gpu)), caps, preferences, library, _capture }))
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
        let preferences = Preferences::new(options, Winners::default());
        if let Some(path) = &options.metal_capture {
            Capture::missing(path);
        }
        // Its one kernel is in no library; what a call may name is in this one.
        Context(Arc::new(Inner { backend: Backend::Cpu, caps, preferences, library: msl::ALL, _capture: None }))
    }

    /// A·B with defaults: shapes \[M,K\]·\[K,N\], or with a leading batch dimension that is equal or 1; the output has the dtype of A and B, f32 where they
    /// differ.
    ///
    /// # Errors
    /// As [`Gemm::run`].
    pub fn matmul(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.same(a.context(), "A")?;
        Gemm::new(a, b).run()
    }

    /// Plans these problems and compiles the pipelines that they need, so that the first products of their kind wait for nothing. No operand is allocated. On
    /// the CPU executor the problems are checked, and nothing else is done.
    ///
    /// ```
    /// use tilewise::{Activation, Context, DType, Gemm, Problem, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// ctx.warm_up(&[Problem::dense(DType::F32, 1, 64, 32), Problem::dense(DType::F32, 128, 64, 32)])?;
    ///
    /// // A problem with strides, an epilogue or groups is had from a product.
    /// let (x, w) = (Tensor::zeros(&ctx, DType::F32, &[8, 32])?, Tensor::zeros(&ctx, DType::F32, &[64, 32])?);
    /// ctx.warm_up(&[Gemm::new(&x, &w.t()).activation(Activation::Relu).problem()?])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Shape`, `Strides`, `Misaligned`, `Overflow`, `BufferTooSmall`, `TooLarge`, `Unsupported` for the first problem that cannot be run on this device,
    /// `NoKernel`; `Device`, `DeviceLost`.
    pub fn warm_up(&self, problems: &[Problem]) -> Result<()> {
        problems.iter().try_for_each(|problem| match &self.0.backend {
            Backend::Gpu(gpu) => self.prepare(gpu, problem, None).map(drop),
            Backend::Cpu => self.plan(problem, None).map(drop),
        })
    }

    /// Which kernel a product uses here and why not another, as text; `kernel` is one that the call names ([`Gemm::kernel`]), and counts before those of the
    /// environment and the tuner, as in a product. At the end, for each pass, whether its pipeline is compiled, and how long that took.
    ///
    /// # Errors
    /// As [`warm_up`](Self::warm_up); `Value` and `UnknownKernel` for a name that is none, `NoKernel` where it does not take the problem.
    pub fn explain(&self, problem: &Problem, kernel: Option<&str>) -> Result<String> {
        let forced = self.forced(kernel, problem)?;
        let asked = forced.as_ref().map(|(forced, _)| forced);
        let Planned { plan, library, refused } = self.planned(problem, asked)?;
        let Ok(gpu) = self.gpu() else {
            let described = tilewise_core::plan::describe(&plan.problem, self.caps());
            return Ok(described + "chosen  matrixmultiply, its only kernel\n");
        };
        let mut text = tilewise_core::explain(problem, self.caps(), library, asked)?;
        if let Some(why) = refused {
            text += &format!("without MSL: {why}\n");
        }
        if let Some((_, who)) = forced {
            text += &format!("forced by {who}\n");
        }
        for (pass, number) in plan.passes.iter().zip(1..) {
            text += &format!("pipeline of pass {number}  {}\n", gpu.pipelines.state(pass));
        }
        Ok(text)
    }

    /// What the device can do.
    pub fn caps(&self) -> &Caps {
        &self.0.caps
    }

    /// The kernels that the planner chooses from. Those in MSL are among them where they may be used, whether or not the device has refused some
    /// ([`explain`](Self::explain) tells).
    pub fn library(&self) -> &'static Library {
        self.0.library
    }

    /// Name of the adapter, or `CPU executor`.
    pub fn adapter_name(&self) -> &str {
        &self.0.caps.name
    }

    /// `vulkan`, `metal`, `dx12`, `gl`, `browser-webgpu` or `cpu`.
    pub fn backend_name(&self) -> &'static str {
        self.gpu().map_or("cpu", |gpu| adapter::backend_name(gpu.device.adapter_info().backend))
    }

    /// Driver and its version, where the backend tells; empty for the CPU executor.
    pub fn driver(&self) -> String {
        self.gpu().map_or_else(|_| String::new(), |gpu| adapter::driver(&gpu.device.adapter_info()))
    }

    /// Whether products run on the CPU executor.
    pub fn is_cpu(&self) -> bool {
        matches!(self.0.backend, Backend::Cpu)
    }

    /// The wgpu device; none for the CPU executor.
    pub fn device(&self) -> Option<&wgpu::Device> {
        self.gpu().ok().map(|gpu| &gpu.device)
    }

    /// The wgpu queue; none for the CPU executor.
    pub fn queue(&self) -> Option<&wgpu::Queue> {
        self.gpu().ok().map(|gpu| &gpu.queue)
    }

    /// Waits until everything submitted so far is done. Does nothing on the CPU executor, whose calls are done when they return.
    ///
    /// # Errors
    /// `DeviceLost`.
    #[cfg(not(target_family = "wasm"))]
    pub fn wait(&self) -> Result<()> {
        match &self.0.backend {
            Backend::Cpu => Ok(()),
            Backend::Gpu(gpu) => gpu.wait(),
        }
    }

    /// The plan of a problem, with the kernel of that name; on the CPU executor one without passes.
    pub(crate) fn plan(&self, problem: &Problem, kernel: Option<&str>) -> Result<Plan> {
        let forced = self.forced(kernel, problem)?.map(|(forced, _)| forced);
        self.plan_with(problem, forced.as_ref())
    }

    /// The plan of a problem, without the MSL that the device is known to refuse: then it is one of WGSL kernels alone, and an error where the kernel is
    /// forced.
    fn planned(&self, problem: &Problem, forced: Option<&Forced>) -> Result<Planned> {
        let library = self.0.library;
        let Ok(gpu) = self.gpu() else {
            forced.map_or(Ok(()), |forced| forced.known(library))?;
            let plan = Plan::without_passes(tilewise_core::plan::check(problem)?);
            return Ok(Planned { plan, library, refused: None });
        };
        forced.map_or(Ok(()), |forced| msl::on(forced, library))?;
        let plan = |library| tilewise_core::plan(problem, self.caps(), library, forced);
        let with_all = plan(library)?;
        match gpu.pipelines.refusal(&with_all.passes) {
            None => Ok(Planned { plan: with_all, library, refused: None }),
            Some(why) if forced.is_some() => Err(Error::NoKernel(why.to_string())),
            Some(why) => Ok(Planned { plan: plan(msl::WGSL)?, library: msl::WGSL, refused: Some(why) }),
        }
    }

    /// The plan with this kernel, or the planner's, whatever the context prefers.
    ///
    /// # Errors
    /// `NoKernel` where the kernel does not take the problem, or the device is known to refuse it.
    pub(crate) fn plan_with(&self, problem: &Problem, forced: Option<&Forced>) -> Result<Plan> {
        Ok(self.planned(problem, forced)?.plan)
    }

    /// Every kernel that would do but those that the device is known to refuse, the cheapest first.
    pub(crate) fn choices(&self, problem: &Problem) -> Result<Vec<Choice>> {
        let Ok(gpu) = self.gpu() else { return Ok(Vec::new()) };
        let mut choices = tilewise_core::plan::choices(problem, self.caps(), self.0.library)?;
        if gpu.pipelines.refusals() > 0 {
            choices.retain(|choice| self.plan_with(problem, Some(&named(choice))).is_ok());
        }
        Ok(choices)
    }

    /// A plan, its pipelines compiled. What of it is in MSL may turn out to be refused, and then `plan` is asked again.
    pub(crate) fn ready(&self, gpu: &Gpu, plan: impl Fn() -> Result<Plan>) -> Result<(Plan, Prepared)> {
        loop {
            let refusals = gpu.pipelines.refusals();
            match plan().and_then(|plan| Ok((plan.clone(), gpu.ready(plan)?))) {
                Err(Error::NoKernel(_)) if gpu.pipelines.refusals() > refusals => {}
                made => return made,
            }
        }
    }

    /// What runs a problem on the GPU: planned and compiled if nothing like it was met before.
    pub(crate) fn prepare(&self, gpu: &Gpu, problem: &Problem, kernel: Option<&Arc<str>>) -> Result<Arc<Prepared>> {
        let asked = Asked::new(&tilewise_core::plan::check(problem)?, kernel);
        gpu.prepare(&asked, || Ok(self.ready(gpu, || self.plan(problem, kernel.map(AsRef::as_ref)))?.1))
    }

    pub(crate) fn gpu(&self) -> Result<&Gpu> {
        match &self.0.backend {
            Backend::Gpu(gpu) => Ok(gpu),
            Backend::Cpu => Err(Error::WrongContext("this needs a GPU, and the context is the CPU executor".into())),
        }
    }

    /// `WrongContext` unless `other` is this context.
    pub(crate) fn same(&self, other: &Context, operand: &str) -> Result<()> {
        if Arc::ptr_eq(&self.0, &other.0) {
            return Ok(());
        }
        Err(Error::WrongContext(format!("{operand} was made on another context, {other:?}, than the call's, {self:?}")))
    }
}

/// Just this choice, as it is forced.
pub(crate) fn named(choice: &Choice) -> Forced {
    let Choice { kernel, variant, pad, splits, .. } = *choice;
    Forced { kernel: kernel.to_owned(), variant: Some(variant.to_owned()), pad, splits: Some(splits) }
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
    let names: Vec<_> = described.map(|adapter| format!("{} ({})", adapter.name, adapter.backend)).collect();
    format!("there are {}, and cpu", names.join(", "))
}
