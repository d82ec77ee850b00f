//! Custom kernels on a GPU.

use super::call::Call;
use super::definition::Kernel;
use super::fitted::{Fitted, no_thread};
use super::generate::{Slot, UNIFORM};
use super::{contiguous, limits};
use crate::gpu::Gpu;
use crate::gpu::pipeline::{Pipeline, storage_entry, uniform_entry};
use crate::tensor::Tensor;
use std::num::NonZeroU64;
use tilewise_core::{Error, Result};
use tilewise_sanitizer::deep;

/// Records a call into a compute pass. Tensors that cannot be bound as they are are copied before
/// it, and of those the outputs brought back after it.
pub(super) fn record(
    kernel: &Kernel,
    call: &Call,
    fitted: &Fitted,
    pass: &mut wgpu::ComputePass<'_>,
) -> Result<Vec<Tensor>> {
    let gpu = call.context.gpu_backend()?;
    let generated = &fitted.generated;
    let pipeline = match gpu.pipelines.custom(&generated.text) {
        Some(pipeline) => pipeline,
        None => compile(kernel, call, fitted, gpu)?,
    };
    limits::written(kernel, call, generated)?;
    let outputs = call.tensors()?;
    if call.is_idle() {
        return Ok(outputs);
    }
    let (mut inputs, mut bound) = (call.inputs.clone(), outputs.clone());
    let mut away = Vec::new();
    // A copy has other strides, so that strides alone ask for it too.
    let strides =
        generated.words.iter().filter(|(_, is_stride, _)| *is_stride).map(|(slot, ..)| slot);
    for &slot in generated.storage.iter().map(|(slot, _)| slot).chain(strides) {
        let tensor = match slot {
            Slot::Input(i) => &mut inputs[i],
            Slot::Output(i) if call.outputs[i].given().is_some() => &mut bound[i],
            Slot::Output(_) => continue,
        };
        if kernel.contiguous && !tensor.is_contiguous() || !can_be_bound(tensor, slot)? {
            *tensor = copy(tensor, pass)?;
            if let Slot::Output(i) = slot {
                away.push(i);
            }
        }
    }
    let tensor = |slot| match slot {
        Slot::Input(i) => &inputs[i],
        Slot::Output(i) => &bound[i],
    };

    let uniform = match generated.uniform {
        true => {
            let layout = |slot| (tensor(slot).shape(), tensor(slot).strides());
            Some(gpu.uniform(&generated.uniform_bytes(fitted.grid, layout)?)?)
        }
        false => None,
    };
    let mut entries = Vec::with_capacity(generated.storage.len() + 1);
    if let Some(uniform) = &uniform {
        entries
            .push(wgpu::BindGroupEntry { binding: UNIFORM, resource: uniform.as_entire_binding() });
    }
    for (binding, &(slot, _)) in (UNIFORM + 1..).zip(&generated.storage) {
        entries.push(wgpu::BindGroupEntry {
            binding,
            resource: wgpu::BindingResource::Buffer(range(tensor(slot))?),
        });
    }
    let group = gpu.device.catch(|| {
        gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(&kernel.name),
            layout: &pipeline.layout,
            entries: &entries,
        })
    })?;
    pass.set_pipeline(&pipeline.pipeline);
    pass.set_bind_group(0, &group, &[]);
    let [x, y, z] = fitted.workgroups;
    pass.dispatch_workgroups(x, y, z);
    for i in away {
        let words = bound[i].words()?.0;
        let (kernel, call) = contiguous::scatter(&words, &outputs[i])?;
        record(&kernel, &call, &Fitted::new(&kernel, &call)?, pass)?;
    }
    Ok(outputs)
}

/// A row-major copy of a view that is not empty, by a dispatch in `pass`.
fn copy(view: &Tensor, pass: &mut wgpu::ComputePass<'_>) -> Result<Tensor> {
    let (kernel, call) = contiguous::gather(view)?;
    let copied = record(&kernel, &call, &Fitted::new(&kernel, &call)?, pass)?;
    let words =
        copied.first().ok_or_else(|| Error::Kernel("contiguous: no copy was made".into()))?;
    Ok(words.as_packed(view.dtype(), view.shape()))
}

/// The pipeline, after the checks that give the same messages everywhere.
fn compile(kernel: &Kernel, call: &Call, fitted: &Fitted, gpu: &Gpu) -> Result<Pipeline> {
    fitted.parse(kernel, call)?;
    let generated = &fitted.generated;
    limits::f16(kernel, call, generated)?;
    let uniform = generated.uniform.then(|| uniform_entry(UNIFORM, generated.uniform_len()));
    let numbered = (UNIFORM + 1..).zip(&generated.storage);
    let storage = numbered.map(|(binding, &(_, read_only))| storage_entry(binding, read_only, 4));
    let entries: Vec<_> = uniform.into_iter().chain(storage).collect();
    // Browsers ask for what naga takes for granted.
    let browser = gpu.device.adapter_info().backend == wgpu::Backend::BrowserWebGpu;
    let enable = if browser && generated.subgroups { "enable subgroups;\n" } else { "" };
    // On a deep stack, because wgpu parses the text, and naga calls itself once per term of an
    // expression.
    // Error scopes belong to a thread, so that they go along.
    let compile = || {
        gpu.pipelines.compile_custom(&gpu.device, &kernel.name, enable, &generated.text, &entries)
    };
    deep(compile).map_err(no_thread)?.map_err(|error| match error {
        // naga has accepted the text with all that it knows, so that what is missing is the
        // device's.
        Error::Device { text, .. } => {
            let device = gpu.device.adapter_info().name;
            Error::MissingFeature(format!(
                "kernel {}: {device} does not take it: {text}",
                kernel.name
            ))
        }
        other => other,
    })
}

/// Whether a binding can start at the first element, and that of an output holds no half of a word
/// which is another's.
fn can_be_bound(tensor: &Tensor, slot: Slot) -> Result<bool> {
    let alignment = u64::from(tensor.context().caps().storage_alignment);
    let extent = tensor.extent()?;
    let starts = tensor.buffer().is_none_or(|(_, first)| first.is_multiple_of(alignment));
    let ends = matches!(slot, Slot::Input(_)) || extent.is_multiple_of(4);
    Ok(extent == 0 || starts && ends)
}

/// From the first element of a view to its last, in whole words; one word for an empty view.
fn range(tensor: &Tensor) -> Result<wgpu::BufferBinding<'_>> {
    let (buffer, first) = tensor
        .buffer()
        .ok_or_else(|| Error::WrongContext("a tensor that is not in GPU memory".into()))?;
    let (offset, bytes) = match tensor.extent()? {
        0 => (0, 4),
        extent => (first, extent.next_multiple_of(4)),
    };
    let (limit, which) =
        (tensor.context().caps().max_binding_bytes, "max_storage_buffer_binding_size");
    if bytes > limit {
        return Err(Error::TooLarge { operand: "a tensor of the kernel", bytes, limit, which });
    }
    Ok(wgpu::BufferBinding { buffer, offset, size: NonZeroU64::new(bytes) })
}
