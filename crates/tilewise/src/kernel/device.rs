//! Custom kernels on a GPU.

use super::call::Call;
use super::definition::Kernel;
use super::fitted::{Fitted, no_thread};
use super::generate::{Binding, Layout, UNIFORM, Word};
use super::output::{Slot, beside_output};
use super::{contiguous, limits};
use crate::gpu::pipeline::{Pipeline, storage_entry, uniform_entry};
use crate::gpu::{Dispatch, Gpu, Grid, Place, Running, Target};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::sync::Arc;
use tilewise_core::{Error, Result};
use tilewise_sanitizer::deep;

/// Records a call. Tensors that cannot be bound are copied before it, and
/// copies of outputs are brought back after it.
pub(super) fn record(
    kernel: &Kernel,
    call: &Call,
    fitted: &Fitted,
    target: &mut dyn Target,
) -> Result<Vec<Tensor>> {
    let gpu = call.context.gpu_backend()?;
    gpu.device.alive()?;
    let running = gpu.device.call();
    let generated = fitted.generated();
    let pipeline = fitted.ready.compiled(|| {
        let compile = || compile(kernel, call, fitted, gpu);
        gpu.pipelines.custom(&gpu.device, &kernel.name, &generated.text, compile)
    })?;
    running.uses(&pipeline.made)?;
    limits::written(kernel, call, generated)?;
    let outputs = call.tensors()?;
    if call.is_idle() {
        return Ok(outputs);
    }
    let mut copies: SmallVec<[(Slot, Tensor); 1]> = SmallVec::new();
    for binding in &generated.storage {
        if let Some(tensor) = call.tensor(binding.slot)
            && !(is_laid_out(kernel, tensor) && can_be_bound(call, binding, tensor)?)
        {
            copies.push((binding.slot, copy(tensor, target)?));
        }
    }
    // A copy has other strides. It is needed even if the text mentions only the strides.
    for word in &generated.words {
        if let Word::Stride(slot, _) = *word
            && let Some(tensor) = call.tensor(slot)
            && !is_laid_out(kernel, tensor)
            && copies.iter().all(|(copied, _)| *copied != slot)
        {
            copies.push((slot, copy(tensor, target)?));
        }
    }
    let tensor = |slot| match (copies.iter().find(|(copied, _)| *copied == slot), slot) {
        (Some((_, copy)), _) => copy,
        (None, Slot::Input(i)) => &call.inputs[i],
        (None, Slot::Output(i)) => &outputs[i],
    };

    if target.runs() {
        dispatch(kernel, call, fitted, (&pipeline, &running), tensor, target)?;
    }
    for (slot, copy) in &copies {
        if let Slot::Output(i) = *slot {
            let (kernel, call) = contiguous::scatter(&copy.words()?.0, &outputs[i])?;
            record(&kernel, &call, &Fitted::new(&kernel, &call)?, target)?;
        }
    }
    Ok(outputs)
}

/// Binds the tensors of a call, and records its dispatch.
fn dispatch<'t>(
    kernel: &Kernel,
    call: &Call,
    fitted: &Fitted,
    (pipeline, running): (&Arc<Pipeline>, &Running),
    tensor: impl Fn(Slot) -> &'t Tensor,
    target: &mut dyn Target,
) -> Result<()> {
    let (gpu, generated) = (call.context.gpu_backend()?, fitted.generated());
    let uniform = match generated.has_uniform {
        true => {
            let layout = |slot| {
                let tensor = tensor(slot);
                let (shape, strides, offset) = (tensor.shape(), tensor.strides(), before(tensor));
                Layout { shape, strides, offset: offset / tensor.dtype().bytes() }
            };
            Some(gpu.uniform(bytemuck::cast_slice(&generated.uniform(call, layout)?))?)
        }
        false => None,
    };
    // In the order of their numbers.
    let mut bound: SmallVec<[(u32, Place<'_>); 8]> = SmallVec::new();
    if let Some((buffer, start)) = &uniform {
        bound.push((UNIFORM, (buffer, u64::from(*start), generated.uniform_len())));
    }
    for (number, binding) in (UNIFORM + 1..).zip(&generated.storage) {
        let (buffer, first, bytes) = place(tensor(binding.slot))?;
        if !matches!(binding.slot, Slot::Output(output) if !call.is_filled(output)) {
            running.reads(buffer, first..first + bytes)?;
        }
        bound.push((number, (buffer, first, bytes)));
    }
    let storage = bound.iter().skip(usize::from(uniform.is_some()));
    for (binding, (_, (buffer, first, bytes))) in generated.storage.iter().zip(storage) {
        if let Slot::Output(_) = binding.slot {
            running.writes(buffer, *first..*first + *bytes)?;
        }
    }
    let bound = gpu.bind(pipeline, &kernel.name, &bound)?;
    let grid = Grid::Given(fitted.workgroups);
    target.dispatch(&Dispatch { pipeline: pipeline.clone(), bound, grid });
    Ok(())
}

/// Makes a row-major copy of a view that is not empty, by a dispatch of its own.
fn copy(view: &Tensor, target: &mut dyn Target) -> Result<Tensor> {
    let (kernel, call) = contiguous::gather(view)?;
    let copied = record(&kernel, &call, &Fitted::new(&kernel, &call)?, target)?;
    let words =
        copied.first().ok_or_else(|| Error::Misuse("contiguous: no copy was made".into()))?;
    Ok(words.as_packed(view.dtype(), view.shape()))
}

/// Compiles the pipeline, after the checks that give the same messages everywhere.
fn compile(kernel: &Kernel, call: &Call, fitted: &Fitted, gpu: &Gpu) -> Result<Pipeline> {
    fitted.parse(kernel, call)?;
    let generated = fitted.generated();
    limits::f16(kernel, call, generated)?;
    limits::subgroups(kernel, call, generated)?;
    let uniform = generated.has_uniform;
    let uniform = uniform.then(|| uniform_entry(UNIFORM, generated.uniform_len(), true));
    let numbered = (UNIFORM + 1..).zip(&generated.storage);
    let storage = numbered
        .map(|(number, binding)| storage_entry(number, binding.read_only, binding.element_bytes));
    let entries: Vec<_> = uniform.into_iter().chain(storage).collect();
    // Browsers want this directive, which naga takes for granted.
    let browser = gpu.device.adapter_info().backend == wgpu::Backend::BrowserWebGpu;
    let enable = if browser && generated.subgroups.is_some() { "enable subgroups;\n" } else { "" };
    // Compiled on a thread with a deep stack: wgpu parses the text, and naga calls itself once per
    // term of an expression. Error scopes belong to a thread, so they are opened there, too.
    let text = format!("{enable}{}", generated.text);
    let (name, ours) = (&kernel.name, kernel.ours);
    let compile = || gpu.pipelines.compile_custom(&gpu.device, name, &text, ours, entries);
    deep(compile).map_err(no_thread)?.map_err(|error| match error {
        // naga has accepted the text with all that it knows.
        Error::Device { text, .. } => Error::DeviceLimit(format!(
            "kernel {}: the device, one of {}, lacks a feature that it uses, or its compiler \
             refuses it: {text}",
            kernel.name,
            gpu.device.adapter_info().name
        )),
        other => other,
    })
}

/// Whether the elements lie as the kernel asks.
fn is_laid_out(kernel: &Kernel, tensor: &Tensor) -> bool {
    !kernel.contiguous || tensor.is_contiguous()
}

/// Whether a tensor can be bound. The binding must start at the first element, or may start before
/// it if functions step over what precedes it. The binding of an output must not hold half of a
/// word whose other half is another tensor's.
fn can_be_bound(call: &Call, binding: &Binding, tensor: &Tensor) -> Result<bool> {
    let (first, extent) = (tensor.place().map_or(0, |(_, first)| first), tensor.extent()?);
    let starts = before(tensor) == 0 || binding.by_functions && is_alone(call, binding.slot);
    let whole = matches!(binding.slot, Slot::Input(_)) || (first | extent).is_multiple_of(4);
    Ok(extent == 0 || starts && whole)
}

/// Whether no other tensor of the call lies in the tensor's buffer, if one of the two is written:
/// browsers refuse bindings that overlap.
fn is_alone(call: &Call, slot: Slot) -> bool {
    match (slot, call.tensor(slot)) {
        (Slot::Input(_), Some(input)) => !beside_output(call, input),
        (Slot::Output(_), Some(tensor)) => {
            call.views().filter(|other| other.storage().shares(tensor.storage())).count() == 1
        }
        (_, None) => true,
    }
}

/// Bytes from the last place where a binding can start to the first element.
fn before(tensor: &Tensor) -> u64 {
    let alignment = u64::from(tensor.context().0.caps.storage_alignment);
    tensor.place().map_or(0, |(_, first)| first % alignment)
}

/// Bytes that are bound for a view: from where its binding can start to its last element, in whole
/// words. One word for an empty view.
pub(super) fn bound(tensor: &Tensor) -> Result<u64> {
    Ok(match tensor.extent()? {
        0 => 4,
        extent => (before(tensor) + extent).next_multiple_of(4),
    })
}

/// The buffer, the first byte and the number of bytes of a view's binding.
fn place(tensor: &Tensor) -> Result<Place<'_>> {
    let (buffer, first) = tensor
        .place()
        .ok_or_else(|| Error::Misuse("wrong context: a tensor that is not in GPU memory".into()))?;
    let bytes = bound(tensor)?;
    let offset = if tensor.elem_count() == 0 { 0 } else { first - before(tensor) };
    let (limit, which) =
        (tensor.context().0.caps.max_binding_bytes, "max_storage_buffer_binding_size");
    if bytes > limit {
        return Err(Error::too_large("a tensor of the kernel", bytes, limit, which));
    }
    Ok((buffer, offset, bytes))
}
