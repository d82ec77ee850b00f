//! Runs a product by shaders that the library would not assemble: the passes of a plan with other
//! texts, in WGSL or in MSL.

use crate::inputs::Operands;
use std::num::NonZeroU64;
use tilewise::planner::Caps;
use tilewise::{Context, Error, Result, Tensor, wgpu};
use tilewise_core::Params;
use tilewise_core::kernel::{Language, Role};
use tilewise_core::plan::{Binding, Pass, Plan, plan};

/// The dispatches that compute a product, for each set of operands.
pub struct Runner {
    context: Context,
    sets: Vec<Vec<Step>>,
}

struct Step {
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
    grid: [u32; 2],
}

/// A compiled text, with the layout that it was compiled for.
struct Compiled {
    text: String,
    entries: Vec<wgpu::BindGroupLayoutEntry>,
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
}

impl Runner {
    /// Plans the products of dense `operands` by the kernel of this name, for a device with these
    /// `caps`. Compiles the passes, after `rewrite` has changed their texts.
    ///
    /// # Errors
    /// The errors of planning and of `rewrite`; `NoKernel` with the driver's words for a text that
    /// it refuses; `Unsupported` for quantized operands, and without a GPU.
    pub fn new(
        context: &Context,
        operands: &Operands,
        kernel: &str,
        caps: &Caps,
        rewrite: impl Fn(String) -> Result<String>,
    ) -> Result<Self> {
        let gpu = context.device().zip(context.queue());
        let gpu =
            gpu.ok_or_else(|| Error::Unsupported("there is no GPU to give shaders to".into()))?;
        let mut compiled: Vec<Compiled> = Vec::new();
        let mut sets = Vec::new();
        for set in 0..operands.sets() {
            let dense = operands.dense(set);
            let [a, b] = dense
                .ok_or_else(|| Error::Unsupported("quantized weights hide their buffers".into()))?;
            let problem = operands.product(set, None).problems()?.remove(0);
            let plan = plan(&problem, caps, context.library(), Some(&kernel.parse()?))?;
            let memory = Memory::new(gpu, &plan, [a, b, operands.output()])?;
            let mut steps = Vec::new();
            for pass in &plan.passes {
                let text = rewrite(assembled(pass))?;
                let entries: Vec<_> = entries(pass).collect();
                let known = compiled
                    .iter()
                    .position(|known| known.text == text && known.entries == entries);
                let at = match known {
                    Some(at) => at,
                    None => {
                        compiled.push(compile(gpu.0, pass, text, entries)?);
                        compiled.len() - 1
                    }
                };
                let Compiled { pipeline, layout, .. } = &compiled[at];
                steps.push(Step {
                    pipeline: pipeline.clone(),
                    group: memory.group(gpu, pass, layout)?,
                    grid: pass.grid,
                });
            }
            sets.push(steps);
        }
        Ok(Runner { context: context.clone(), sets })
    }

    /// Records the product of a set.
    pub fn record(&self, set: usize, pass: &mut wgpu::ComputePass<'_>) {
        for Step { pipeline, group, grid: [x, y] } in &self.sets[set % self.sets.len()] {
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, group, &[]);
            pass.dispatch_workgroups(*x, *y, 1);
        }
    }

    /// Computes the first set's product.
    ///
    /// # Errors
    /// `Device` with the driver's words, `DeviceLost`.
    pub fn run(&self) -> Result<()> {
        if let (Some(device), Some(queue)) = (self.context.device(), self.context.queue()) {
            attempt(device, || {
                let mut encoder =
                    device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                self.record(
                    0,
                    &mut encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()),
                );
                queue.submit([encoder.finish()]);
            })?;
        }
        self.context.wait_blocking()
    }
}

/// The text that the library gives to the driver.
pub fn assembled(pass: &Pass) -> String {
    match pass.language {
        Language::Wgsl => tilewise_shaders::assemble(pass),
        Language::Msl => tilewise_msl::assemble(pass),
    }
}

/// Compiles a text; `NoKernel` with the driver's words if the driver refuses it.
fn compile(
    device: &wgpu::Device,
    pass: &Pass,
    text: String,
    entries: Vec<wgpu::BindGroupLayoutEntry>,
) -> Result<Compiled> {
    let label = Some(pass.label.as_str());
    let refused = |error| match error {
        Error::Device { text: words, .. } => {
            Error::NoKernel(super::compiler::complaint(device, &text).unwrap_or(words))
        }
        other => other,
    };
    let built = attempt(device, || {
        let (module, entry_point) = match pass.language {
            Language::Wgsl => {
                let source = wgpu::ShaderSource::Wgsl(text.as_str().into());
                (
                    device.create_shader_module(wgpu::ShaderModuleDescriptor { label, source }),
                    "main",
                )
            }
            Language::Msl => {
                let entry_points = [wgpu::PassthroughShaderEntryPoint {
                    name: tilewise_msl::ENTRY.into(),
                    workgroup_size: (pass.threads, 1, 1),
                }];
                let descriptor = wgpu::ShaderModuleDescriptorPassthrough {
                    label,
                    entry_points: entry_points.as_slice().into(),
                    msl: Some(text.as_str().into()),
                    ..Default::default()
                };
                // SAFETY: the text is one of the library's, which pass unchecked with this layout.
                // `rewrite` does not change what a text reads and writes.
                let module = unsafe { device.create_shader_module_passthrough(descriptor) };
                (module, tilewise_msl::ENTRY)
            }
        };
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label,
            entries: &entries,
        });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label,
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some(entry_point),
            compilation_options: wgpu::PipelineCompilationOptions {
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: None,
        });
        (pipeline, layout)
    });
    let (pipeline, layout) = built.map_err(refused)?;
    Ok(Compiled { text, entries, pipeline, layout })
}

/// The layout of a pass: its parameters and its buffers, in ascending order.
fn entries(pass: &Pass) -> impl Iterator<Item = wgpu::BindGroupLayoutEntry> {
    let entry = |role: Role, ty, bytes| wgpu::BindGroupLayoutEntry {
        binding: role.binding(),
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty,
            has_dynamic_offset: false,
            min_binding_size: NonZeroU64::new(bytes),
        },
        count: None,
    };
    let params = entry(Role::Params, wgpu::BufferBindingType::Uniform, size_of::<Params>() as u64);
    let storage = move |binding: &Binding| {
        let ty = wgpu::BufferBindingType::Storage { read_only: !binding.writable };
        entry(binding.role, ty, binding.element_bytes)
    };
    std::iter::once(params).chain(pass.bindings.iter().map(storage))
}

/// The buffers of a plan.
struct Memory<'a> {
    places: [(Role, Option<&'a wgpu::Buffer>); 3],
    scratch: wgpu::Buffer,
    packed: wgpu::Buffer,
}

impl<'a> Memory<'a> {
    /// Tensors made by the library begin where their buffers begin; the plan has the offsets of
    /// views.
    fn new(gpu: Gpu<'_>, plan: &Plan, [a, b, c]: [&'a Tensor; 3]) -> Result<Self> {
        let buffer = |bytes: u64| {
            let (size, usage) = (bytes.max(4), wgpu::BufferUsages::STORAGE);
            let descriptor =
                wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
            attempt(gpu.0, || gpu.0.create_buffer(&descriptor))
        };
        let place = |tensor: &'a Tensor| tensor.buffer().map(|(buffer, _)| buffer);
        Ok(Memory {
            places: [(Role::A, place(a)), (Role::B, place(b)), (Role::C, place(c))],
            scratch: buffer(plan.scratch_bytes)?,
            packed: buffer(plan.packed_bytes)?,
        })
    }

    fn buffer(&self, role: Role) -> Result<&wgpu::Buffer> {
        match role {
            Role::Scratch => Ok(&self.scratch),
            Role::Packed => Ok(&self.packed),
            _ => {
                let place = self.places.iter().find(|(known, _)| *known == role);
                let place = place.and_then(|(_, buffer)| *buffer);
                place.ok_or_else(|| {
                    Error::Unsupported(format!("a plain product has no {}", role.name()))
                })
            }
        }
    }

    fn group(
        &self,
        gpu: Gpu<'_>,
        pass: &Pass,
        layout: &wgpu::BindGroupLayout,
    ) -> Result<wgpu::BindGroup> {
        let (device, queue) = gpu;
        let params = Params { alpha: 1f32.to_bits(), beta: 0f32.to_bits(), ..pass.params };
        let resources = pass.bindings.iter().map(|binding| {
            let size = NonZeroU64::new(binding.bytes);
            Ok((
                binding.role,
                wgpu::BufferBinding {
                    buffer: self.buffer(binding.from)?,
                    offset: binding.start,
                    size,
                },
            ))
        });
        let resources: Vec<_> = resources.collect::<Result<_>>()?;
        attempt(device, || {
            let uniform = device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: size_of::<Params>() as u64,
                usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            });
            queue.write_buffer(&uniform, 0, bytemuck::bytes_of(&params));
            let mut entries = vec![wgpu::BindGroupEntry {
                binding: Role::Params.binding(),
                resource: uniform.as_entire_binding(),
            }];
            entries.extend(resources.into_iter().map(|(role, buffer)| wgpu::BindGroupEntry {
                binding: role.binding(),
                resource: wgpu::BindingResource::Buffer(buffer),
            }));
            let label = Some(pass.label.as_str());
            device.create_bind_group(&wgpu::BindGroupDescriptor {
                label,
                layout,
                entries: &entries,
            })
        })
    }
}

type Gpu<'a> = (&'a wgpu::Device, &'a wgpu::Queue);

/// Runs `make`; if the driver complains, returns its words in one line.
fn attempt<T>(device: &wgpu::Device, make: impl FnOnce() -> T) -> Result<T> {
    let scopes = [
        wgpu::ErrorFilter::Validation,
        wgpu::ErrorFilter::OutOfMemory,
        wgpu::ErrorFilter::Internal,
    ]
    .map(|filter| device.push_error_scope(filter));
    let made = make();
    let errors: Vec<_> =
        scopes.into_iter().rev().filter_map(|scope| pollster::block_on(scope.pop())).collect();
    match errors.first() {
        None => Ok(made),
        Some(error) => Err(Error::device(
            error.to_string().split_whitespace().collect::<Vec<_>>().join(" "),
            None,
        )),
    }
}
