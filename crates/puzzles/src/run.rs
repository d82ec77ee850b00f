//! One run of an answer, under the sanitizer.

use crate::puzzle::{Array, Case, Puzzle};
use tilewise::{Call, Context, DType, Kernel, Result, Tensor};
use tilewise_sanitizer::{Kind, Options, Report, Shader};

/// Turns of a loop after which it counts as endless. No puzzle needs twenty, and the picture keeps
/// every access of them.
const MOST_TURNS: u64 = 1000;

/// Result of one run of an answer.
pub(crate) struct Run {
    /// `out`, row-major.
    pub(crate) output: Vec<f32>,
    /// Report of the sanitizer.
    pub(crate) report: Report,
    /// The findings for people, pointing into the answer; empty if there are none.
    pub(crate) findings: String,
    /// The module that was made of the answer.
    pub(crate) shader: Shader,
}

impl Run {
    /// Whether the sanitizer found something of this kind.
    pub(crate) fn found(&self, kind: Kind) -> bool {
        self.report.findings.iter().any(|finding| finding.kind == kind)
    }

    /// Whether anybody wrote element `index` of `out`.
    pub(crate) fn wrote(&self, index: usize) -> bool {
        let offset = 4 * index as u32;
        self.report
            .trace
            .iter()
            .any(|access| access.variable == "out" && access.write && access.offset == offset)
    }
}

/// Runs `body` as the kernel of a puzzle on the CPU, under the sanitizer.
///
/// # Errors
/// The errors of [`Kernel::check`], above all for a body that is no WGSL.
pub(crate) fn run(
    puzzle: &Puzzle,
    case: &Case,
    body: &str,
    inputs: &[Array],
    color: bool,
) -> Result<Run> {
    let context = Context::cpu();
    let kernel = kernel(puzzle, body);
    let mut options = Options::default();
    (options.trace, options.max_iterations) = (true, MOST_TURNS);
    let check = kernel.check_blocking(&call(&context, case, inputs)?, options)?;
    let findings = check.render(color);
    Ok(Run {
        output: check.outputs[0].read_f32_blocking()?,
        report: check.report,
        findings,
        shader: check.shader,
    })
}

/// The module that is generated for an answer.
///
/// # Errors
/// The errors of [`Kernel::wgsl`].
pub(crate) fn wgsl(puzzle: &Puzzle, case: &Case, body: &str, inputs: &[Array]) -> Result<String> {
    kernel(puzzle, body).wgsl(&call(&Context::cpu(), case, inputs)?)
}

fn kernel(puzzle: &Puzzle, body: &str) -> Kernel {
    Kernel::new(puzzle.name).inputs(puzzle.inputs.iter().copied()).outputs(["out"]).source(body)
}

fn call(context: &Context, case: &Case, inputs: &[Array]) -> Result<Call> {
    let mut call = Call::new(context).grid(case.grid).workgroup(case.workgroup).edge(case.edge);
    for &(name, value) in case.constants {
        call = call.constant(name, value);
    }
    for input in inputs {
        call = call.input(&Tensor::upload(context, &input.values, &input.shape)?);
    }
    Ok(call.output(DType::F32, case.output))
}
