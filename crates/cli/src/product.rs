//! What all products have in common: the adapter, the run, the check, the report.

use crate::args::{DTypeArg, Execution};
use crate::array::{Array, Sink, shape_text};
use crate::failure::{Failure, Result};
use crate::oracle;
use std::io::Write;
use tilewise::{Context, ContextOptions, Gemm, Tensor};
use tilewise_core::convert::decode_f64;
use tilewise_core::problem::{DType, Problem};
use tilewise_core::reference::Inputs;

/// Opens the adapter that `--adapter` names, else the one that the environment names, else the best GPU, else the CPU executor.
pub(crate) fn open(adapter: Option<&str>) -> Result<Context> {
    let options = adapter.map_or_else(ContextOptions::default, ContextOptions::adapter);
    Ok(Context::with_options(&options)?)
}

/// Adapter, backend and driver, for people.
pub(crate) fn adapter_text(context: &Context) -> String {
    if context.is_cpu() {
        return context.adapter_name().into();
    }
    format!("{} ({}, {})", context.adapter_name(), context.backend_name(), context.driver())
}

/// Refuses, before any work is done, an output that cannot be written.
pub(crate) fn check_output(output: &Sink, asked: Option<DTypeArg>) -> Result<()> {
    if let Some(asked) = asked {
        output.admit(asked.into()).map_err(Failure::Usage)?;
    }
    output.probe()
}

/// Element type of a result: what was asked for, else the type that the operands share, else f32.
pub(crate) fn out_dtype(asked: Option<DTypeArg>, operands: &[DType], output: &Sink) -> Result<DType> {
    let shared = operands.iter().all(|dtype| *dtype == operands[0]);
    let dtype = asked.map_or(if shared { operands[0] } else { DType::F32 }, DType::from);
    output.admit(dtype).map_err(Failure::Other)?;
    Ok(dtype)
}

/// An array on the device.
pub(crate) fn upload(context: &Context, array: &Array) -> Result<Tensor> {
    Ok(Tensor::from_bytes(context, array.dtype, &array.bytes, &array.shape)?)
}

/// The elements, for the oracle.
pub(crate) fn wide(array: &Array) -> Result<Vec<f64>> {
    Ok(decode_f64(array.dtype, &array.bytes)?)
}

/// A product that has been run.
pub(crate) struct Measured {
    /// What was computed.
    pub(crate) problem: Problem,
    /// The result, packed.
    pub(crate) array: Array,
    /// Kernel and variant.
    pub(crate) kernel: String,
    /// Median time of one run.
    pub(crate) seconds: f64,
    /// How many runs the median is taken of.
    pub(crate) runs: usize,
    /// Who took the time.
    pub(crate) clock: &'static str,
}

impl Measured {
    /// Runs `gemm`, several times if it is short.
    pub(crate) fn run(gemm: &Gemm<'_>) -> Result<Self> {
        todo!()
    }

    /// The largest error as a fraction of its bound; a failure if an element lies outside.
    pub(crate) fn check(&self, inputs: &Inputs<'_>) -> Result<f64> {
        oracle::check(&self.problem, inputs, &wide(&self.array)?)
    }

    /// Floating-point operations per second, in TFLOP/s.
    pub(crate) fn tflops(&self) -> f64 {
        self.problem.flops() / self.seconds / 1e12
    }
}

/// One product of the command line.
pub(crate) struct Job<'a> {
    pub(crate) context: &'a Context,
    pub(crate) gemm: Gemm<'a>,
    pub(crate) execution: &'a Execution,
    pub(crate) output: &'a Sink,
}

/// Compares a result with the oracle, given what went into it.
type Check<'a> = &'a dyn Fn(&Inputs<'_>) -> Result<f64>;

impl Job<'_> {
    /// Runs, checks if asked to, writes the result, reports. `inputs` hands the operands to the check.
    pub(crate) fn run(self, out: &mut dyn Write, inputs: impl FnOnce(Check<'_>) -> Result<f64>) -> Result<()> {
        let gemm = match &self.execution.kernel {
            Some(kernel) => self.gemm.kernel(kernel),
            None => self.gemm,
        };
        let measured = Measured::run(&gemm)?;
        let error = if self.execution.check { Some(inputs(&|inputs| measured.check(inputs))?) } else { None };
        self.output.write(&measured.array)?;

        let Problem { n, k, .. } = measured.problem;
        let Array { dtype, shape, .. } = &measured.array;
        writeln!(out, "adapter  {}", adapter_text(self.context))?;
        writeln!(out, "product  {} {dtype}, K = {k}, {}", shape_text(shape), measured.problem.layout())?;
        writeln!(out, "kernel   {}", measured.kernel)?;
        Ok(())
    }
}
