//! The modules that were generated from a kernel, kept so that a call like an earlier one generates
//! nothing.

use super::call::{Call, Edge, Template};
use super::generate::Generated;
use super::output::beside_output;
use crate::gpu::pipeline::Pipeline;
use crate::host::cache::{Cache, lock};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use tilewise_core::Result;
use tilewise_sanitizer::Shader;

/// The most modules of one kernel that are kept.
const MAX_MODULES: usize = 256;

/// The modules of a kernel and its clones.
#[derive(Clone)]
pub(super) struct Known(Arc<Cache<Signature, Arc<Ready>>>);

impl Default for Known {
    fn default() -> Self {
        Known(Arc::new(Cache::new(MAX_MODULES)))
    }
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Known")
    }
}

impl Known {
    /// The module for a call. `generate` makes it, unless an earlier call was alike.
    pub(super) fn module(
        &self,
        call: &Call,
        generate: impl FnOnce() -> Result<Generated>,
    ) -> Result<Arc<Ready>> {
        self.0.get_or_make(&Signature::of(call), || {
            let (parsed, compiled) = Default::default();
            Ok(Arc::new(Ready { generated: generate()?, parsed, compiled }))
        })
    }
}

/// A module, with the shader that the CPU executor has parsed, or the pipeline that a device has
/// compiled. The device's context holds the pipeline: a kernel may outlive the context.
pub(super) struct Ready {
    pub(super) generated: Generated,
    parsed: OnceLock<Shader>,
    compiled: Mutex<Weak<Pipeline>>,
}

impl Ready {
    /// The parsed module; `parse` parses it the first time.
    pub(super) fn parsed(&self, parse: impl FnOnce() -> Result<Shader>) -> Result<&Shader> {
        match self.parsed.get() {
            Some(shader) => Ok(shader),
            None => {
                let shader = parse()?;
                Ok(self.parsed.get_or_init(|| shader))
            }
        }
    }

    /// The compiled pipeline; `compile` makes it if the device has none of this text.
    pub(super) fn compiled(
        &self,
        compile: impl FnOnce() -> Result<Arc<Pipeline>>,
    ) -> Result<Arc<Pipeline>> {
        if let Some(pipeline) = lock(&self.compiled).upgrade() {
            return Ok(pipeline);
        }
        let pipeline = compile()?;
        *lock(&self.compiled) = Arc::downgrade(&pipeline);
        Ok(pipeline)
    }
}

/// The context of a call, and all of the call that its module's text depends on. Each part includes
/// its length, so different calls never have the same bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Signature(SmallVec<[u8; 128]>);

impl Signature {
    fn of(call: &Call) -> Self {
        let mut signature = Signature(SmallVec::new());
        signature.add(&(Arc::as_ptr(&call.context.0) as usize).to_le_bytes());
        call.workgroup.iter().for_each(|size| signature.add(&size.to_le_bytes()));
        signature.add(&[u8::from(call.edge == Edge::Clip), u8::from(call.is_aligned())]);
        // The numbers of inputs and outputs are those of the kernel's names, and are left out.
        for input in &call.inputs {
            signature.add(&[u8::from(beside_output(call, input))]);
            signature.tensor(input.dtype() as u8, input.shape());
        }
        for output in &call.outputs {
            signature.tensor(output.dtype() as u8, output.shape());
        }
        for (name, template) in &call.templates {
            match template {
                Template::DType(dtype) => signature.add(&[0, *dtype as u8]),
                Template::Constant(constant) => {
                    signature.add(&[1, constant.kind()]);
                    signature.add(&constant.bits().to_le_bytes());
                }
            }
            signature.name(name);
        }
        for (name, value) in &call.values {
            signature.add(&[2, value.kind()]);
            signature.name(name);
        }
        signature
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn tensor(&mut self, dtype: u8, shape: &[usize]) {
        self.add(&[dtype]);
        self.add(&(shape.len() as u32).to_le_bytes());
    }

    fn name(&mut self, name: &str) {
        self.add(&(name.len() as u32).to_le_bytes());
        self.add(name.as_bytes());
    }
}
