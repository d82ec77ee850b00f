//! Compiled pipelines: once per context, and between runs where the backend can keep them.

use crate::gpu::{Gpu, lock};
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tilewise_core::Result;
use tilewise_core::plan::{Binding, Part, Pass};

#[derive(Clone)]
pub(crate) struct Pipeline {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
}

/// Pipelines by the parts of their shader.
pub(crate) struct Pipelines {
    compiled: Mutex<HashMap<Vec<Part>, Pipeline>>,
    kept: Option<Kept>,
}

impl Pipelines {
    pub(crate) fn new(device: &wgpu::Device, folder: Option<&Path>) -> Self {
        Pipelines { compiled: Mutex::default(), kept: folder.and_then(|folder| Kept::open(device, folder)) }
    }

    /// The pipeline of a pass, compiled when it is met for the first time.
    pub(crate) fn get(&self, gpu: &Gpu, pass: &Pass) -> Result<Pipeline> {
        if let Some(pipeline) = lock(&self.compiled).get(&pass.parts) {
            return Ok(pipeline.clone());
        }
        let pipeline = gpu.catch(|| self.compile(&gpu.device, pass))?;
        if let Some(kept) = &self.kept {
            kept.changed.store(true, Ordering::Relaxed);
        }
        log::debug!("compiled {} for {}", pass.label, gpu.device.adapter_info().name);
        Ok(lock(&self.compiled).entry(pass.parts.clone()).or_insert(pipeline).clone())
    }

    fn compile(&self, device: &wgpu::Device, pass: &Pass) -> Pipeline {
        let descriptor = wgpu::ShaderModuleDescriptor {
            label: Some(&pass.label),
            source: wgpu::ShaderSource::Wgsl(tilewise_shaders::assemble(pass).into()),
        };
        // SAFETY: the shader is one of ours. Without checks it must not index outside its bindings, loop forever, or divide by zero:
        // ARCHITECTURE.md ("Unchecked shaders") lists the invariants by which the kernels keep to that for every plan, and the tests that hold
        // each of them.
        let module = unsafe { device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) };
        let uniform = wgpu::BindGroupLayoutEntry {
            binding: tilewise_core::kernel::Role::Params.binding(),
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Uniform,
                has_dynamic_offset: false,
                min_binding_size: NonZeroU64::new(size_of::<tilewise_core::Params>() as u64),
            },
            count: None,
        };
        let entries: Vec<_> = std::iter::once(uniform).chain(pass.bindings.iter().map(storage_entry)).collect();
        let layout = device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: Some(&pass.label), entries: &entries });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(&pass.label),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(&pass.label),
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &[],
                // Every kernel writes workgroup memory before it reads it.
                zero_initialize_workgroup_memory: false,
            },
            cache: self.kept.as_ref().map(|kept| &kept.cache),
        });
        Pipeline { pipeline, layout }
    }
}

fn storage_entry(binding: &Binding) -> wgpu::BindGroupLayoutEntry {
    wgpu::BindGroupLayoutEntry {
        binding: binding.role.binding(),
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only: !binding.writable },
            has_dynamic_offset: false,
            min_binding_size: NonZeroU64::new(binding.element_bytes),
        },
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
        let descriptor =
            wgpu::PipelineCacheDescriptor { label: Some("tilewise"), data: data.as_deref(), fallback: true };
        // SAFETY: the file is named by wgpu's key for this adapter and was written below from `get_data`, whole or not at all. That nobody else has
        // written to the user's cache folder cannot be proven; wgpu and the driver check the header and drop what does not fit.
        let cache = unsafe { device.create_pipeline_cache(&descriptor) };
        Some(Kept { cache, file, changed: AtomicBool::new(false) })
    }

    /// Writes the cache whole or not at all: to a name of this process's own, then by renaming.
    fn save(&self) -> std::io::Result<()> {
        let (Some(data), Some(folder)) = (self.cache.get_data(), self.file.parent()) else { return Ok(()) };
        std::fs::create_dir_all(folder)?;
        let draft = self.file.with_extension(format!("{}.draft", std::process::id()));
        std::fs::write(&draft, data)?;
        std::fs::rename(&draft, &self.file).inspect_err(|_| {
            let _ = std::fs::remove_file(&draft);
        })
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

/// `TILEWISE_CACHE_DIR`, or `tilewise` in the user's cache folder; none when the variable is set and empty, or nothing is known.
pub(crate) fn default_folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    if let Some(folder) = variable("TILEWISE_CACHE_DIR") {
        return (!folder.as_os_str().is_empty()).then_some(folder);
    }
    let base = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else if cfg!(target_vendor = "apple") {
        variable("HOME").map(|home| home.join("Library/Caches"))
    } else {
        variable("XDG_CACHE_HOME")
            .filter(|p| p.is_absolute())
            .or_else(|| variable("HOME").map(|home| home.join(".cache")))
    };
    base.map(|base| base.join("tilewise"))
}
