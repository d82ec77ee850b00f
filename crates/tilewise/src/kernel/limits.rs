//! The limits of a text and of a call, checked before a device sees them. A refusal carries the
//! numbers.

use super::call::Call;
use super::definition::Kernel;
use super::generate::{Binding, Generated};
use super::output::{Output, Slot};
use super::text::Text;
use crate::context::Context;
use crate::tensor::{Tensor, count};
use std::fmt;
use tilewise_core::{DType, Error, Result};
use tilewise_sanitizer::Shader;
use tilewise_shaders::portable::{beyond_wgsl, mixed_operators};
use tilewise_shaders::tokens::Token;

/// The limits of the context's device. On the CPU executor they are WebGPU's, unless its caps
/// differ.
fn of(context: &Context) -> wgpu::Limits {
    let caps = &context.0.caps;
    let of_caps = || wgpu::Limits {
        max_compute_workgroup_storage_size: caps.max_workgroup_bytes,
        max_compute_invocations_per_workgroup: caps.max_invocations,
        max_compute_workgroup_size_x: caps.max_workgroup_size_x,
        ..wgpu::Limits::defaults()
    };
    context.device().map_or_else(of_caps, wgpu::Device::limits)
}

fn within(
    kernel: &Kernel,
    what: fmt::Arguments<'_>,
    needed: u64,
    limit: u64,
    which: &str,
) -> Result<()> {
    if needed <= limit {
        return Ok(());
    }
    let name = &kernel.name;
    Err(Error::DeviceLimit(format!(
        "kernel {name}: {what}: {needed}, and the limit of the device is {limit} ({which})"
    )))
}

/// The numbers of workgroups of a call along x, y and z, checked against the limits.
pub(super) fn workgroups(kernel: &Kernel, call: &Call) -> Result<[u32; 3]> {
    let name = &kernel.name;
    let grid = call.grid.ok_or_else(|| {
        Error::Misuse(format!("kernel {name}: the call has no grid; Call::grid gives it one"))
    })?;
    let (limits, size) = (of(&call.context), call.workgroup);
    if size.contains(&0) {
        return Err(Error::Misuse(format!(
            "kernel {name}: a workgroup of {size:?} has no invocations"
        )));
    }
    let along = [
        ("x", limits.max_compute_workgroup_size_x, "max_compute_workgroup_size_x"),
        ("y", limits.max_compute_workgroup_size_y, "max_compute_workgroup_size_y"),
        ("z", limits.max_compute_workgroup_size_z, "max_compute_workgroup_size_z"),
    ];
    for (size, (axis, limit, which)) in size.into_iter().zip(along) {
        within(
            kernel,
            format_args!("invocations of a workgroup along {axis}"),
            size.into(),
            limit.into(),
            which,
        )?;
    }
    let invocations = size.iter().map(|&size| u64::from(size)).product();
    let (limit, which) =
        (limits.max_compute_invocations_per_workgroup, "max_compute_invocations_per_workgroup");
    within(
        kernel,
        format_args!("invocations of a workgroup of {size:?}"),
        invocations,
        limit.into(),
        which,
    )?;
    let groups = [0, 1, 2].map(|axis| grid[axis].div_ceil(size[axis]));
    for (groups, axis) in groups.into_iter().zip(["x", "y", "z"]) {
        let (limit, which) =
            (limits.max_compute_workgroups_per_dimension, "max_compute_workgroups_per_dimension");
        within(
            kernel,
            format_args!(
                "workgroups along {axis} for a grid of {grid:?} in workgroups of {size:?}"
            ),
            groups.into(),
            limit.into(),
            which,
        )?;
    }
    Ok(groups)
}

/// Checks the number of bindings, and the sizes of new outputs.
pub(super) fn bindings(kernel: &Kernel, call: &Call, generated: &Generated) -> Result<()> {
    let limit = of(&call.context).max_storage_buffers_per_shader_stage;
    let which = "max_storage_buffers_per_shader_stage";
    let what = format_args!("storage buffers bound");
    within(kernel, what, generated.storage.len() as u64, limit.into(), which)?;
    for output in &call.outputs {
        let Output::New(dtype, shape) = output else { continue };
        let bytes = (count(shape)? as u64).checked_mul(dtype.bytes()).ok_or_else(|| {
            Error::Shape(format!("overflow: an output of {dtype} of shape {shape:?}"))
        })?;
        let (limit, which) =
            (call.context.0.caps.max_binding_bytes, "max_storage_buffer_binding_size");
        if bytes > limit {
            return Err(Error::too_large("an output", bytes, limit, which));
        }
    }
    Ok(())
}

/// `DeviceLimit` for tensors that the sanitizer's machine, which runs kernels on the CPU, cannot
/// address. A view counts from its first element to its last, or as a row-major copy, whichever is
/// larger.
pub(super) fn host(call: &Call) -> Result<()> {
    let viewed = |tensor: &Tensor| {
        Ok::<_, Error>(tensor.extent()?.max(bytes_of(tensor.dtype(), tensor.shape())?))
    };
    let mut sizes = Vec::new();
    for tensor in &call.inputs {
        sizes.push(("an input", viewed(tensor)?));
    }
    for output in &call.outputs {
        let bytes = match output {
            Output::New(dtype, shape) => bytes_of(*dtype, shape)?,
            Output::Given(tensor, _) => viewed(tensor)?,
        };
        sizes.push(("an output", bytes));
    }
    let (limit, which) =
        (u64::from(u32::MAX - 3), "addresses of 32 bits where kernels run on the CPU");
    match sizes.into_iter().find(|(_, bytes)| *bytes > limit) {
        Some((operand, bytes)) => Err(Error::too_large(operand, bytes, limit, which)),
        None => Ok(()),
    }
}

fn bytes_of(dtype: DType, shape: &[usize]) -> Result<u64> {
    Ok((count(shape)? as u64).saturating_mul(dtype.bytes()))
}

/// `Misuse` for a text that would reach beyond its end, `Unsupported` for a text that naga takes
/// but WGSL does not.
pub(super) fn readable(kernel: &Kernel, part: &str, text: &Text<'_>) -> Result<()> {
    let at = |Token { line, column, .. }: &Token<'_>| {
        format!("{} ({part}):{line}:{column}", kernel.name)
    };
    if let Some(comment) = text.open_comment() {
        return Err(Error::Misuse(format!("{}: this comment has no end", at(comment))));
    }
    if let Some(brace) = text.stray_brace() {
        return Err(Error::Misuse(format!("{}: this brace has no counterpart", at(brace))));
    }
    if let Some(operator) = mixed_operators(&text.tokens).first() {
        return Err(Error::Misuse(format!(
            "{}: WGSL wants parentheses around && or || if one is beside the other",
            at(operator)
        )));
    }
    if let Some(number) = beyond_wgsl(&text.tokens).first() {
        return Err(Error::Unsupported(format!(
            "kernel {}: `{}`: WGSL has no numbers of 64 bits, and no integers of 16",
            at(number),
            number.text
        )));
    }
    Ok(())
}

/// `Misuse` for an output that the text does not mention, unless the call fills it. Call it after
/// the text is found valid, because errors of an invalid text say more.
pub(super) fn written(kernel: &Kernel, call: &Call, generated: &Generated) -> Result<()> {
    let unbound = |&index: &usize| {
        let filled = call.init.is_some() && call.outputs[index].given().is_none();
        !filled && generated.binding(Slot::Output(index)).is_none()
    };
    match (0..kernel.outputs.len()).find(unbound) {
        Some(index) => Err(Error::Misuse(format!(
            "{}: nothing writes the output {:?}",
            kernel.name, kernel.outputs[index]
        ))),
        None => Ok(()),
    }
}

/// `DeviceLimit` for half precision on a GPU that has none. The CPU executor and the sanitizer
/// have it.
pub(super) fn f16(kernel: &Kernel, call: &Call, generated: &Generated) -> Result<()> {
    let context = &call.context;
    if context.is_cpu() || context.0.caps.f16 || !generated.f16 {
        return Ok(());
    }
    let direct = generated.storage.iter().filter(|binding| !binding.by_functions);
    let dtype = |binding: &Binding| match binding.slot {
        Slot::Input(i) => (&kernel.inputs[i], "load", call.inputs[i].dtype()),
        Slot::Output(i) => (&kernel.outputs[i], "store", call.outputs[i].dtype()),
    };
    let halves = direct.map(dtype).find(|(_, _, dtype)| *dtype == DType::F16);
    let who = halves.map_or_else(|| "it uses".to_owned(), |(name, _, _)| format!("{name} is"));
    let way = halves.map_or_else(String::new, |(name, function, _)| {
        format!("; {name}_{function} takes f16 everywhere")
    });
    let why = context.lacks(wgpu::Features::SHADER_F16, "shader-f16");
    Err(Error::DeviceLimit(format!("kernel {}: {who} f16, and {why}{way}", kernel.name)))
}

/// `DeviceLimit` for subgroups on a GPU that has none. The CPU executor and the sanitizer have
/// them.
pub(super) fn subgroups(kernel: &Kernel, call: &Call, generated: &Generated) -> Result<()> {
    let (Some(used), Some(device)) = (&generated.subgroups, call.context.device()) else {
        return Ok(());
    };
    if device.features().contains(wgpu::Features::SUBGROUP) {
        return Ok(());
    }
    let why = call.context.lacks(wgpu::Features::SUBGROUP, "subgroups");
    Err(Error::DeviceLimit(format!("kernel {}: {used}, and {why}", kernel.name)))
}

/// Whether a struct has a member such as `mat2x2<f32>` or `mat3x2<f32>`. naga's HLSL loses writes
/// to such members: its functions for them take a copy of the struct.
fn has_members_of_two_rows(module: &naga::Module) -> bool {
    use naga::{TypeInner, VectorSize};
    let of_two_rows = |ty| match module.types[ty].inner {
        TypeInner::Matrix { rows, .. } => rows == VectorSize::Bi,
        _ => false,
    };
    module.types.iter().any(|(_, ty)| match &ty.inner {
        TypeInner::Struct { members, .. } => members.iter().any(|own| of_two_rows(own.ty)),
        _ => false,
    })
}

/// Checks that need the module itself: its workgroup memory, and that it has no bindings and no
/// entry points besides the generated ones.
pub(super) fn module(
    kernel: &Kernel,
    call: &Call,
    generated: &Generated,
    shader: &Shader,
) -> Result<()> {
    let (name, module) = (&kernel.name, shader.module());
    if module.entry_points.len() != 1 {
        let names: Vec<_> = module.entry_points.iter().map(|entry| entry.name.as_str()).collect();
        return Err(Error::Misuse(format!(
            "{name}: the body is the only entry point, and there are {names:?}"
        )));
    }
    if let Some((_, constant)) = module.overrides.iter().next() {
        let which = constant.name.as_deref().unwrap_or("one");
        return Err(Error::Misuse(format!(
            "{name}: {which} is an override; Call::constant gives constants"
        )));
    }
    if call.context.backend_name() == "dx12" && has_members_of_two_rows(module) {
        return Err(Error::Unsupported(format!(
            "kernel {name}: a struct has a matrix of two rows, and what is written to it is lost \
             in the HLSL that wgpu makes for DX12; vectors are not"
        )));
    }
    let bound = module.global_variables.iter().map(|(_, variable)| variable).filter(|variable| {
        variable.binding.is_some()
            || matches!(variable.space, naga::AddressSpace::Immediate | naga::AddressSpace::Handle)
    });
    let bound: Vec<_> = bound.filter_map(|variable| variable.name.as_deref()).collect();
    if bound.len() > generated.storage.len() + usize::from(generated.has_uniform) {
        return Err(Error::Misuse(format!(
            "{name}: the header binds variables besides the call's: {bound:?}"
        )));
    }
    let mut layouter = naga::proc::Layouter::default();
    layouter.update(module.to_ctx()).map_err(|error| Error::Misuse(format!("{name}: {error}")))?;
    let entry = shader.info().get_entry_point(0);
    let used = module.global_variables.iter().filter(|(handle, variable)| {
        variable.space == naga::AddressSpace::WorkGroup && !entry[*handle].is_empty()
    });
    // Rounded as WebGPU counts it.
    let bytes =
        used.map(|(_, variable)| u64::from(layouter[variable.ty].size).next_multiple_of(16)).sum();
    let limit = of(&call.context).max_compute_workgroup_storage_size;
    within(
        kernel,
        format_args!("bytes of workgroup memory"),
        bytes,
        limit.into(),
        "max_compute_workgroup_storage_size",
    )
}
