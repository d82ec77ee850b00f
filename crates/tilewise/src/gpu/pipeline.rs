//! Pipelines, compiled once per context, and kept between runs if the backend can keep them.

use super::bind::{Bound, number};
use super::device::Device;
use super::outcome::Outcome;
use crate::adapter::backend_name;
use crate::adapter::msl;
use crate::host::cache::{Cache, lock};
use crate::host::files;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tilewise_core::kernel::{Language, Role};
use tilewise_core::plan::{Binding, Part, Pass};
use tilewise_core::{Error, Params, Result};
use web_time::Instant;

pub(crate) struct Pipeline {
    /// The number by which bind groups mention it.
    pub(super) number: u64,
    pipeline: wgpu::ComputePipeline,
    pub(super) layout: wgpu::BindGroupLayout,
    /// Whether each binding has a dynamic offset, in their order.
    pub(super) moves: Vec<bool>,
    /// The time that compiling took, if it is known.
    seconds: Option<f64>,
    /// The outcome of the call that compiled it.
    pub(crate) made: Outcome,
}

impl Pipeline {
    /// Sets the pipeline and its bindings in a pass.
    pub(crate) fn set(&self, pass: &mut wgpu::ComputePass<'_>, bound: &Bound) {
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &bound.group, &bound.offsets);
    }
}

/// The parts of a shader, and whether the shader is for operands that lie beside C.
pub(super) type Text = (Vec<Part>, bool);

pub(super) fn text_of(pass: &Pass) -> Text {
    (pass.parts.clone(), pass.beside_c)
}

/// Pipelines by the text of their shader.
pub(crate) struct Pipelines {
    compiled: Cache<Text, Arc<Pipeline>>,
    #[cfg(feature = "custom-kernels")]
    custom: Cache<String, Arc<Pipeline>>,
    refused: Refusals,
    kept: Option<Kept>,
}

impl Pipelines {
    pub(crate) fn new(device: &wgpu::Device, folder: Option<&Path>) -> Self {
        let kept = folder.and_then(|folder| Kept::open(device, folder));
        Pipelines {
            compiled: Cache::new(usize::MAX),
            #[cfg(feature = "custom-kernels")]
            custom: Cache::new(usize::MAX),
            refused: Refusals::default(),
            kept,
        }
    }

    /// The pipeline of a pass, compiled when it is met for the first time. `moves` is whether its
    /// operands are views that move ([`let_move`]); passes with the same text must agree.
    ///
    /// # Errors
    /// [`DeviceLimit`](crate::Error) for MSL that is refused, now or before.
    pub(crate) fn get(&self, device: &Device, pass: &Pass, moves: bool) -> Result<Arc<Pipeline>> {
        if let Some(why) = self.refusal(std::slice::from_ref(pass)) {
            return Err(Error::DeviceLimit(why.to_string()));
        }
        let compile = || match pass.language {
            Language::Wgsl => device.catch(|| self.compile(device, pass, moves)),
            Language::Msl => self.compile_msl(device, pass),
        };
        self.compiled.get_or_make(&text_of(pass), || self.timed(device, &pass.label, compile))
    }

    /// Why the device has refused the MSL of one of these passes, if it has.
    pub(crate) fn refusal(&self, passes: &[Pass]) -> Option<Arc<str>> {
        self.refused.find(passes)
    }

    /// How many texts in MSL the device has refused.
    pub(crate) fn refusals(&self) -> usize {
        lock(&self.refused.known).len()
    }

    /// Whether the pipeline of a pass is compiled.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn has(&self, pass: &Pass) -> bool {
        self.compiled.get(&text_of(pass)).is_some()
    }

    /// Whether the pipeline of a pass is compiled, in words.
    pub(crate) fn state(&self, pass: &Pass) -> String {
        match self.compiled.get(&text_of(pass)).map(|pipeline| pipeline.seconds) {
            Some(Some(seconds)) => format!("compiled in {seconds:.3} s"),
            Some(None) => "compiled".into(),
            None => "not compiled yet".into(),
        }
    }

    /// Notes and logs how long `compile` takes.
    fn timed(
        &self,
        device: &Device,
        label: &str,
        compile: impl FnOnce() -> Result<Pipeline>,
    ) -> Result<Arc<Pipeline>> {
        let start = Instant::now();
        let call = device.calls.begin();
        let pipeline = compile()?;
        // A browser compiles later.
        let seconds = (!cfg!(target_family = "wasm")).then(|| start.elapsed().as_secs_f64());
        if let Some(kept) = &self.kept {
            kept.changed.store(true, Ordering::Relaxed);
        }
        let took =
            seconds.map_or_else(String::new, |seconds| format!(" in {:.1} ms", seconds * 1e3));
        log::info!("compiled {label}{took} for {}", device.adapter_info().name);
        Ok(Arc::new(Pipeline { seconds, made: call.outcome(), ..pipeline }))
    }

    fn compile(&self, device: &Device, pass: &Pass, moves: bool) -> Pipeline {
        let descriptor = wgpu::ShaderModuleDescriptor {
            label: Some(&pass.label),
            source: wgpu::ShaderSource::Wgsl(tilewise_shaders::assemble(pass).into()),
        };
        // The sanitizer runs every kernel and variant at sizes around every tile edge
        // (tests/tests/host/sanitized.rs), and `cargo xtask mutate` shows that it finds mistakes.
        // docs/safety.md has the invariants that carry this to every other size.
        //
        // SAFETY: unchecked, a shader must not leave its bindings, loop forever, or divide by zero.
        // The sanitizer shows that the library's shaders do not.
        let module = unsafe {
            device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked())
        };
        // Every kernel writes workgroup memory before it reads it. The sanitizer shows this, too:
        // it starts with undefined memory.
        let mut entries = entries(pass);
        if moves {
            let_move(device, &mut entries);
        }
        self.build(device, &pass.label, (&module, "main"), &entries, false)
    }

    /// Compiles a pass in MSL. If the driver refuses the text, this is remembered, and the error is
    /// `DeviceLimit`. Errors of a lost device, or for want of memory, are not remembered.
    fn compile_msl(&self, device: &Device, pass: &Pass) -> Result<Pipeline> {
        let text = msl::assemble(pass);
        let entry_point = wgpu::PassthroughShaderEntryPoint {
            name: msl::ENTRY.into(),
            workgroup_size: (pass.threads, 1, 1),
        };
        let entry_points = [entry_point];
        let descriptor = || wgpu::ShaderModuleDescriptorPassthrough {
            label: Some(&pass.label),
            entry_points: entry_points.as_slice().into(),
            msl: Some(text.as_str().into()),
            ..Default::default()
        };
        // SAFETY: only the driver's compiler looks at the text, so the text must not do what WGSL
        // cannot. It is the library's own. As the same pass in WGSL does, it stays within its
        // bindings, ends, and reads only what it has written: the harness runs every file, kernel
        // and variant on the CPU under sanitizers. It finds its buffers where wgpu binds them:
        // Metal's slots follow the entries of the layout, as `assemble` numbers them. A backend
        // that takes no MSL gets no other text, and says so.
        let module =
            device.attempt(|| unsafe { device.create_shader_module_passthrough(descriptor()) })?;
        let built = match module {
            Ok(module) => device.attempt(|| {
                self.build(device, &pass.label, (&module, msl::ENTRY), &entries(pass), false)
            })?,
            Err(error) => Err(error),
        };
        built.or_else(|error| {
            device.still_alive()?;
            let words = msl::words(device, &text).unwrap_or_else(|| match error {
                Error::Device { text, .. } => text,
                other => other.to_string(),
            });
            Err(Error::DeviceLimit(
                self.refused.add(pass, &words, &device.adapter_info()).to_string(),
            ))
        })
    }

    /// The pipeline of a module's entry point.
    fn build(
        &self,
        device: &wgpu::Device,
        label: &str,
        (module, entry_point): (&wgpu::ShaderModule, &str),
        entries: &[wgpu::BindGroupLayoutEntry],
        zero_initialize_workgroup_memory: bool,
    ) -> Pipeline {
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some(label),
            entries,
        });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(label),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(label),
            layout: Some(&pipeline_layout),
            module,
            entry_point: Some(entry_point),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &[],
                zero_initialize_workgroup_memory,
            },
            cache: self.kept.as_ref().map(|kept| &kept.cache),
        });
        let moves = |entry: &wgpu::BindGroupLayoutEntry| {
            matches!(entry.ty, wgpu::BindingType::Buffer { has_dynamic_offset: true, .. })
        };
        let moves = entries.iter().map(moves).collect();
        let (number, seconds, made) = (number(), None, Outcome::default());
        Pipeline { number, pipeline, layout, moves, seconds, made }
    }
}

/// The directive of texts for matrix units.
#[cfg(feature = "custom-kernels")]
const UNITS: &str = "enable wgpu_cooperative_matrix;";

/// Pipelines of custom kernels.
#[cfg(feature = "custom-kernels")]
impl Pipelines {
    /// The pipeline of a text; `compile` makes it when it is met for the first time.
    pub(crate) fn custom(
        &self,
        device: &Device,
        label: &str,
        text: &str,
        compile: impl FnOnce() -> Result<Pipeline>,
    ) -> Result<Arc<Pipeline>> {
        self.custom.get_or_make(text, || self.timed(device, label, compile))
    }

    /// Compiles a custom kernel with all of wgpu's checks, because its text is not the library's.
    /// If it is (`ours`: an operation), loops get no bound, and workgroup memory is not zeroed: FXC
    /// would repeat the loop, and the zeros, until it gives up. One for matrix units has no checks
    /// at all, because they cost time at every index. Aliases are expanded, as in the library's
    /// other texts.
    pub(crate) fn compile_custom(
        &self,
        device: &Device,
        label: &str,
        text: &str,
        ours: bool,
        mut entries: Vec<wgpu::BindGroupLayoutEntry>,
    ) -> Result<Pipeline> {
        let_move(device, &mut entries);
        let source = wgpu::ShaderSource::Wgsl(tilewise_shaders::without_aliases(text).into());
        let descriptor = wgpu::ShaderModuleDescriptor { label: Some(label), source };
        device.catch(|| {
            // The loops of the library's operations end. With matrix units they have no checks at
            // all: they stay within arrays, and divide by no 0.
            let mut checks = wgpu::ShaderRuntimeChecks::checked();
            checks.force_loop_bounding = !ours;
            if ours && text.contains(UNITS) {
                checks = wgpu::ShaderRuntimeChecks::unchecked();
            }
            // SAFETY: only the library's operations lack checks. The sanitizer shows that they need
            // none (`small_cases_are_clean` in tests/tests/device/ops.rs).
            let module = unsafe { device.create_shader_module_trusted(descriptor, checks) };
            self.build(device, label, (&module, "main"), &entries, !ours)
        })
    }
}

/// The texts in MSL that a device does not compile, with the compiler's words.
#[derive(Default)]
struct Refusals {
    known: Mutex<HashMap<Vec<Part>, Arc<str>>>,
    /// Whether a refusal was logged as a warning.
    told: AtomicBool,
}

impl Refusals {
    fn find(&self, passes: &[Pass]) -> Option<Arc<str>> {
        let known = lock(&self.known);
        if known.is_empty() {
            return None;
        }
        passes.iter().find_map(|pass| known.get(pass.parts.as_slice()).cloned())
    }

    fn add(&self, pass: &Pass, words: &str, info: &wgpu::AdapterInfo) -> Arc<str> {
        let (backend, name) = (backend_name(info.backend), &info.name);
        let why: Arc<str> =
            format!("the MSL of {} is refused by {name} through {backend}: {words}", pass.label)
                .into();
        lock(&self.known).insert(pass.parts.clone(), why.clone());
        if self.told.swap(true, Ordering::Relaxed) {
            log::debug!("{why}");
        } else {
            log::warn!(
                "{why}; products are computed by WGSL kernels instead, unless one in MSL is \
                 forced; further refusals are logged at the level debug"
            );
        }
        why
    }
}

/// The layout of a pass: its parameters and its buffers, in ascending order.
fn entries(pass: &Pass) -> Vec<wgpu::BindGroupLayoutEntry> {
    let params = uniform_entry(Role::Params.binding(), size_of::<Params>() as u64, false);
    let storage = |binding: &Binding| {
        storage_entry(binding.role.binding(), pass.read_only(binding), binding.element_bytes)
    };
    std::iter::once(params).chain(pass.bindings.iter().map(storage)).collect()
}

/// Gives storage buffers dynamic offsets, so that a view that moves within its buffer keeps its
/// bind group. Only Vulkan and Metal get them, and only if the device has enough for all buffers.
/// They save recording time. Their effect on a GPU's time is not measured yet.
fn let_move(device: &Device, entries: &mut [wgpu::BindGroupLayoutEntry]) {
    let takes =
        matches!(device.adapter_info().backend, wgpu::Backend::Vulkan | wgpu::Backend::Metal);
    let most = device.limits().max_dynamic_storage_buffers_per_pipeline_layout as usize;
    let mut storage: Vec<_> = entries
        .iter_mut()
        .filter_map(|entry| match &mut entry.ty {
            wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { .. },
                has_dynamic_offset,
                ..
            } => Some(has_dynamic_offset),
            _ => None,
        })
        .collect();
    if takes && storage.len() <= most {
        storage.iter_mut().for_each(|moves| **moves = true);
    }
}

/// The entry of a uniform. With a `dynamic` offset, many contents share a bind group. But then
/// products of one row are up to a fifth slower on an H200.
pub(crate) fn uniform_entry(binding: u32, bytes: u64, dynamic: bool) -> wgpu::BindGroupLayoutEntry {
    entry(binding, wgpu::BufferBindingType::Uniform, bytes, dynamic)
}

/// The entry of a storage buffer whose elements have `element_bytes`.
pub(crate) fn storage_entry(
    binding: u32,
    read_only: bool,
    element_bytes: u64,
) -> wgpu::BindGroupLayoutEntry {
    entry(binding, wgpu::BufferBindingType::Storage { read_only }, element_bytes, false)
}

fn entry(
    binding: u32,
    ty: wgpu::BufferBindingType,
    bytes: u64,
    has_dynamic_offset: bool,
) -> wgpu::BindGroupLayoutEntry {
    let min_binding_size = NonZeroU64::new(bytes);
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size },
        count: None,
    }
}

/// wgpu's pipeline cache in a file, written when the context goes.
struct Kept {
    cache: wgpu::PipelineCache,
    file: PathBuf,
    changed: AtomicBool,
}

impl Kept {
    fn open(device: &wgpu::Device, folder: &Path) -> Option<Self> {
        if !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let file = folder.join(wgpu::util::pipeline_cache_key(&device.adapter_info())?);
        let data = std::fs::read(&file).ok();
        let descriptor = wgpu::PipelineCacheDescriptor {
            label: Some("tilewise"),
            data: data.as_deref(),
            fallback: true,
        };
        // SAFETY: the file has the name of wgpu's key for this adapter and was written below from
        // `get_data`, whole or not at all. It cannot be proven that nobody else has written to the
        // user's cache folder; wgpu and the driver check the header and drop what does not fit.
        let cache = unsafe { device.create_pipeline_cache(&descriptor) };
        Some(Kept { cache, file, changed: AtomicBool::new(false) })
    }

    fn save(&self) -> std::io::Result<()> {
        self.cache.get_data().map_or(Ok(()), |data| files::replace(&self.file, &data))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.changed.load(Ordering::Relaxed)
            && let Err(error) = self.save()
        {
            log::debug!("the pipeline cache {} was not written: {error}", self.file.display());
        }
    }
}
