//! Making a module that fits a kernel, a call and the device.

use super::call::Call;
use super::definition::Kernel;
use super::generate::{Generated, generate};
use super::known::Ready;
use super::limits;
use super::names::Names;
use super::output::{self, Slot};
use super::pointers;
use std::sync::Arc;
use tilewise_core::{DType, Error, Result};
use tilewise_sanitizer::Shader;

/// A call that fits its kernel and the device: its module, and its numbers of workgroups.
pub(super) struct Fitted {
    pub(super) ready: Arc<Ready>,
    pub(super) workgroups: [u32; 3],
}

impl Fitted {
    /// Checks everything except the text, and generates the module.
    pub(super) fn new(kernel: &Kernel, call: &Call) -> Result<Self> {
        let name = &kernel.name;
        for (what, names, tensors) in [
            ("inputs", &kernel.inputs, call.inputs.len()),
            ("outputs", &kernel.outputs, call.outputs.len()),
        ] {
            if names.len() != tensors {
                return Err(Error::Shape(format!(
                    "kernel {name} has the {what} {names:?}, the call has {tensors}"
                )));
            }
        }
        if kernel.outputs.is_empty() {
            return Err(Error::Shape(format!("kernel {name} has no outputs")));
        }
        for (input, tensor) in kernel.inputs.iter().zip(&call.inputs) {
            call.context.same(tensor.context(), input)?;
        }
        output::writable(kernel, call)?;
        let workgroups = limits::workgroups(kernel, call)?;
        let ready = kernel.known.module(call, || {
            let [inputs, outputs] = [&kernel.inputs, &kernel.outputs]
                .map(|n| n.iter().map(String::as_str).collect::<Vec<_>>());
            let templates: Vec<_> = call.templates.iter().map(|(name, _)| name.as_str()).collect();
            let values: Vec<_> = call.values.iter().map(|(name, _)| name.as_str()).collect();
            let names = Names::new(name, &inputs, &outputs, &templates, &values)?;
            generate(kernel, call, &names)
        })?;
        limits::bindings(kernel, call, &ready.generated)?;
        Ok(Fitted { ready, workgroups })
    }

    pub(super) fn generated(&self) -> &Generated {
        &self.ready.generated
    }

    /// Parses and validates the module, and checks that it mentions every output.
    pub(super) fn shader(&self, kernel: &Kernel, call: &Call) -> Result<Shader> {
        let shader = self.parse(kernel, call)?;
        limits::written(kernel, call, self.generated())?;
        Ok(shader)
    }

    /// Parses and validates the module.
    pub(super) fn parse(&self, kernel: &Kernel, call: &Call) -> Result<Shader> {
        let generated = self.generated();
        let shader = Shader::parse_parts(&generated.text, &generated.parts);
        let shader = shader.map_err(|wrong| with_hints(kernel, call, generated, error(wrong)))?;
        limits::module(kernel, call, generated, &shader)?;
        pointers::passed(kernel, &shader)?;
        Ok(shader)
    }
}

/// Adds a remedy to an error of the text, if a rule of custom kernels is behind it.
fn with_hints(kernel: &Kernel, call: &Call, generated: &Generated, error: Error) -> Error {
    let Error::Misuse(mut text) = error else { return error };
    for (name, _) in &call.values {
        if text.contains("(header)") && text.contains(&format!("`{name}`")) {
            text += &format!(
                "\n`{name}` is a value of the call, which the body alone sees: a function of the \
                 header takes it as an argument"
            );
        }
    }
    let halves = generated.storage.iter().filter(|binding| !binding.by_functions);
    let halves = halves.map(|binding| match binding.slot {
        Slot::Input(i) => (&kernel.inputs[i], call.inputs[i].dtype(), "_load"),
        Slot::Output(i) => (&kernel.outputs[i], call.outputs[i].dtype(), "_store"),
    });
    for (name, _, function) in halves.filter(|(_, dtype, _)| *dtype == DType::BF16) {
        text += &format!(
            "\n{name} is bf16, which WGSL lacks: its array holds words of two elements, and \
             {name}{function} takes single ones"
        );
    }
    Error::Misuse(text)
}

/// The library's error for an error of the sanitizer.
pub(super) fn error(error: tilewise_sanitizer::Error) -> Error {
    match error {
        unsupported @ tilewise_sanitizer::Error::Unsupported { .. } => {
            Error::Unsupported(unsupported.to_string())
        }
        other => Error::Misuse(other.to_string()),
    }
}

/// The library's error for one of [`deep`](tilewise_sanitizer::deep).
pub(super) fn no_thread(error: std::io::Error) -> Error {
    Error::OutOfMemory(format!("no thread to compile on: {error}"))
}
