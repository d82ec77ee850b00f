//! Runs cases where a thread may block: on any context, and in the sanitizer.

use super::Case;
use crate::sanitized::Failure;
use std::cell::RefCell;
use std::collections::HashSet;
use tilewise::sanitizer::Options;
use tilewise::{Call, Context};
use tilewise_core::caps::RECORDED;
use tilewise_core::{Caps, DeviceClass};

/// The most invocations of a workgroup.
const WORKGROUP: u32 = 256;

/// A run in the sanitizer.
pub struct Ran {
    /// Files that the kernels are made of.
    pub files: HashSet<&'static str>,
    /// The cost of the run, in operations of the sanitizer.
    pub operations: u64,
    /// The output.
    pub bits: Vec<u8>,
}

/// The CPU executor with NVIDIA's matrix units, for [`Context::cpu_as`].
pub fn units() -> Caps {
    let (_, nvidia) = RECORDED.iter().find(|(name, _)| *name == "nvidia-h200").unwrap();
    // The text's loops are not unrolled.
    Caps { class: DeviceClass::Cpu, ..nvidia() }
}

impl Case {
    /// Waits for [`outcome`](Self::outcome).
    ///
    /// # Errors
    /// The errors of `outcome`.
    pub fn run(&self, context: &Context) -> Result<(), String> {
        pollster::block_on(self.outcome(context))
    }

    /// Runs the case on a context, and gives the bytes of its output.
    ///
    /// # Errors
    /// The errors of the operation.
    pub fn bits(&self, context: &Context) -> Result<Vec<u8>, tilewise::Error> {
        let (inputs, out, _) = self.prepared(context);
        (self.op)(&inputs).run_into(&out)?;
        out.read_bytes_blocking()
    }

    /// Runs the case in the sanitizer, with these texts.
    ///
    /// # Errors
    /// The finding, or the first number that is wrong.
    pub fn check(
        &self,
        options: &Options,
        text: impl Fn((&'static str, &'static str)) -> String,
    ) -> Result<Ran, Failure> {
        let context = if self.on_units { Context::cpu_as(units()) } else { Context::cpu() };
        let (inputs, out, _) = self.prepared(&context);
        let files = RefCell::new(HashSet::new());
        let noted = |file: (&'static str, &'static str)| {
            files.borrow_mut().insert(file.0);
            text(file)
        };
        let refused = |error: tilewise::Error| Failure::Refused(error.to_string());
        let calls = (self.op)(&inputs).calls_of(&out, &noted).map_err(refused)?;
        let mut operations = 0;
        for (kernel, call) in &calls {
            let failed = |error| match error {
                tilewise::Error::Misuse(text) => Failure::Invalid(text),
                other => refused(other),
            };
            let mut check = |call: &Call| {
                let check = kernel.check_blocking(call, options.clone()).map_err(failed)?;
                if let Some(finding) = check.report.findings.first() {
                    return Err(Failure::Found(finding.kind, check.render(false)));
                }
                operations += check.report.counters.operations;
                Ok(check.report.counters.invocations)
            };
            let invocations = check(call)? as u32;
            // Large grids have several rows of workgroups, some of which have no work.
            if invocations > WORKGROUP {
                check(&call.clone().grid([invocations, 2, 1]))?;
            }
            // The check worked on copies, and the next kernel needs this one's output.
            kernel.run(call).map_err(failed)?;
        }
        pollster::block_on(self.hold(&out)).map_err(Failure::Wrong)?;
        let bits = out.read_bytes_blocking().map_err(refused)?;
        Ok(Ran { files: files.into_inner(), operations, bits })
    }
}
