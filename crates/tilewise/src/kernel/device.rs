//! Custom kernels on a GPU.

use super::call::Call;
use super::definition::Kernel;
use super::fitted::{Fitted, no_thread};
use super::generate::{Slot, UNIFORM, Word};
use super::{contiguous, limits};
use crate::gpu::pipeline::{Pipeline, storage_entry, uniform_entry};
use crate::gpu::{Gpu, Place};
use crate::tensor::Tensor;
use smallvec::SmallVec;
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
    gpu.device.alive()?;
    let generated = fitted.generated();
    let custom = fitted
        .ready
        .compiled(gpu, || gpu.custom_of(&generated.text, || compile(kernel, call, fitted, gpu)))?;
    limits::written(kernel, call, generated)?;
    let outputs = call.tensors()?;
    if call.is_idle() {
        return Ok(outputs);
    }
    // A copy has other strides, so that strides alone ask for it too.
    let strides = generated.words.iter().filter_map(|word| match word {
        Word::Stride(slot, _) => Some(*slot),
        _ => None,
    });
    let mut copies: SmallVec<[(Slot, Tensor); 1]> = SmallVec::new();
    for slot in generated.storage.iter().map(|(slot, _)| *slot).chain(strides) {
        let tensor = match slot {
            Slot::Input(i) => &call.inputs[i],
            Slot::Output(i) if call.outputs[i].given().is_some() => &outputs[i],
            Slot::Output(_) => continue,
        };
        let fits = can_be_bound(tensor, slot)? && is_laid_out(kernel, tensor);
        if !fits && copies.iter().all(|(copied, _)| *copied != slot) {
            copies.push((slot, copy(tensor, pass)?));
        }
    }
    let tensor = |slot| match (copies.iter().find(|(copied, _)| *copied == slot), slot) {
        (Some((_, copy)), _) => copy,
        (None, Slot::Input(i)) => &call.inputs[i],
        (None, Slot::Output(i)) => &outputs[i],
    };

    let mut places: SmallVec<[Place<'_>; 8]> = SmallVec::new();
    for &(slot, _) in &generated.storage {
        places.push(place(tensor(slot))?);
    }
    let uniform = match generated.has_uniform {
        true => {
            let layout = |slot| (tensor(slot).shape(), tensor(slot).strides());
            Some(gpu.uniform(bytemuck::cast_slice(&generated.uniform(call, layout)?))?)
        }
        false => None,
    };
    let bound = uniform.as_ref().map(|(buffer, _)| (&**buffer, generated.uniform_len()));
    let group = gpu.bind_custom(&custom, &kernel.name, bound, &places)?;
    drop(places);
    pass.set_pipeline(&custom.pipeline.pipeline);
    pass.set_bind_group(0, &group, uniform.as_ref().map(|(_, start)| *start).as_slice());
    let [x, y, z] = fitted.workgroups;
    pass.dispatch_workgroups(x, y, z);
    for (slot, copy) in &copies {
        if let Slot::Output(i) = *slot {
            let (kernel, call) = contiguous::scatter(&copy.words()?.0, &outputs[i])?;
            record(&kernel, &call, &Fitted::new(&kernel, &call)?, pass)?;
        }
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
    let generated = fitted.generated();
    limits::f16(kernel, call, generated)?;
    let uniform = generated.has_uniform;
    let uniform = uniform.then(|| uniform_entry(UNIFORM, generated.uniform_len(), true));
    let numbered = (UNIFORM + 1..).zip(&generated.storage);
    let storage = numbered.map(|(binding, &(_, read_only))| storage_entry(binding, read_only, 4));
    let entries: Vec<_> = uniform.into_iter().chain(storage).collect();
    // Browsers ask for what naga takes for granted.
    let browser = gpu.device.adapter_info().backend == wgpu::Backend::BrowserWebGpu;
    let enable = if browser && generated.subgroups { "enable subgroups;\n" } else { "" };
    // On a deep stack, because wgpu parses the text, and naga calls itself once per term of an
    // expression.
    // Error scopes belong to a thread, so that they go along.
    let text = format!("{enable}{}", generated.text);
    let compile = || gpu.pipelines.compile_custom(&gpu.device, &kernel.name, text, &entries);
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
    let starts = tensor.place().is_none_or(|(_, first)| first.is_multiple_of(alignment));
    let ends = matches!(slot, Slot::Input(_)) || extent.is_multiple_of(4);
    Ok(extent == 0 || starts && ends)
}

/// Whether the elements lie as the kernel asks.
fn is_laid_out(kernel: &Kernel, tensor: &Tensor) -> bool {
    !kernel.contiguous || tensor.is_contiguous()
}

/// From the first element of a view to its last, in whole words; one word for an empty view.
fn place(tensor: &Tensor) -> Result<Place<'_>> {
    let (buffer, first) = tensor
        .place()
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
    Ok((buffer, offset, bytes))
}
