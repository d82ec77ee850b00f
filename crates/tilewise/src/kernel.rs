//! Custom kernels. The user writes only the body in WGSL; the signature, the bindings and the sizes
//! are generated around it. Modelled on `mlx.fast.metal_kernel`.

mod built_in;
mod call;
mod contiguous;
mod definition;
mod device;
mod fitted;
mod functions;
mod generate;
mod host;
mod known;
mod limits;
mod msl;
mod names;
mod output;
mod pointers;
mod text;

pub use call::{Call, Constant, Edge};
pub use definition::Kernel;

use crate::gpu::Nowhere;
use crate::recorder::{AsRecorder, Way};
use crate::tensor::Tensor;
use fitted::Fitted;
use host::Tensors;
use output::Output;
use tilewise_core::{DType, Error, Result};
use tilewise_sanitizer::{Kind, Options, Report, Shader};

/// The sanitizer's report on a call.
#[derive(Debug)]
#[non_exhaustive]
pub struct Check {
    /// Findings and counters.
    pub report: Report,
    /// The outputs as the sanitizer's run left them, on the call's context. All are new tensors,
    /// even if the call gives tensors as outputs.
    pub outputs: Vec<Tensor>,
    /// The generated module, into which the findings point.
    pub shader: Shader,
}

impl Check {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.report.is_clean()
    }

    /// The findings for people, pointing into the body and the header; empty when there are none.
    /// `color` adds ANSI colours.
    pub fn render(&self, color: bool) -> String {
        self.report.render(&self.shader, color)
    }
}

impl Kernel {
    /// Runs the kernel and returns its outputs in the order of their names. An output is a new
    /// tensor, or a clone of the tensor that the call gives. On a GPU the work is submitted, not
    /// waited for.
    ///
    /// A GPU has no bound for an endless loop: the device hangs until its driver gives it up.
    /// [`check_blocking`](Self::check_blocking) finds such a loop, and so does the CPU executor.
    ///
    /// Between two products:
    ///
    /// ```
    /// use tilewise::{Call, Context, DType, Kernel, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let square = Kernel::new("square")
    ///     .inputs(["a"])
    ///     .outputs(["out"])
    ///     .source("let i = global_id.x; out[i] = a[i] * a[i];");
    /// let x = Tensor::upload(&ctx, &[1.0f32, 2.0], &[1, 2])?;
    /// let w = Tensor::upload(&ctx, &[3.0f32, -1.0, 1.0, 2.0], &[2, 2])?;
    /// let h = ctx.matmul(&x, &w)?; // 5, 3
    /// let call = Call::new(&ctx).input(&h).output(DType::F32, h.shape()).grid([2, 1, 1]);
    /// let h = square.run_one(&call)?; // 25, 9
    /// assert_eq!(ctx.matmul(&h, &w)?.read_blocking::<f32>()?, [84.0, -7.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Misuse`](crate::Error) for a text that is not valid or does not mention an output that is
    /// not filled, for a missing grid, and for tensors of another context; `Shape` for more or
    /// fewer tensors than names, and for an output that overlaps itself or another tensor;
    /// `Unsupported` for a type that kernels do not take there; `DeviceLimit` for what exceeds the
    /// device.
    pub fn run(&self, call: &Call) -> Result<Vec<Tensor>> {
        call.context.submit_as(&self.name, |to| self.record(to, call))
    }

    /// Adds the kernel to the given compute pass, command encoder or recorder. Nothing is
    /// submitted: the outputs hold results once the caller has submitted it.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run); [`Misuse`](crate::Error) on the CPU executor, unless the
    /// recorder is its own, and for the recorder of another context.
    pub fn record(&self, to: &mut impl AsRecorder, call: &Call) -> Result<Vec<Tensor>> {
        let mut to = to.as_recorder();
        let way = to.way(&call.context)?;
        let fitted = Fitted::new(self, call)?;
        match way {
            Way::Record(_, target) => {
                self.show(call, &fitted)?;
                device::record(self, call, &fitted, target)
            }
            Way::Run => self.run_on_host(call, &fitted),
            Way::Plan(planned) => {
                if call.context.is_cpu() {
                    self.parsed(call, &fitted)?;
                }
                let (kernel, own) = (self.clone(), call.clone());
                planned.operations.push(Box::new(move |to| kernel.record(to, &own).map(drop)));
                call.tensors()
            }
        }
    }

    /// Compiles the kernel for a call, and runs nothing: later calls of its kind then wait for
    /// nothing. On the CPU executor it is parsed and validated. To compile many kernels at once,
    /// record them in [`Context::warm_up`](crate::Context::warm_up).
    ///
    /// ```
    /// use tilewise::{Call, Context, DType, Kernel};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let kernel = Kernel::new("index").outputs(["out"]).source("out[global_id.x] = globl_id.x;");
    /// let call = Call::new(&ctx).output(DType::U32, &[4]).grid([4, 1, 1]);
    /// let error = kernel.validate(&call).unwrap_err();
    /// assert!(error.to_string().contains("index (body):1"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`run`](Self::run), except those of computing. A browser compiles later, and
    /// [`Context::wait`](crate::Context::wait) gives the errors of its compiler.
    pub fn validate(&self, call: &Call) -> Result<()> {
        let fitted = Fitted::new(self, call)?;
        match call.context.is_cpu() {
            true => self.parsed(call, &fitted).map(drop),
            false => device::record(self, call, &fitted, &mut Nowhere).map(drop),
        }
    }

    /// The module as the CPU executor runs it.
    fn parsed<'f>(&self, call: &Call, fitted: &'f Fitted) -> Result<&'f Shader> {
        let shader = fitted.ready.parsed(|| fitted.parse(self, call))?;
        limits::written(self, call, fitted.generated())?;
        Ok(shader)
    }

    fn run_on_host(&self, call: &Call, fitted: &Fitted) -> Result<Vec<Tensor>> {
        let shader = self.parsed(call, fitted)?;
        self.show(call, fitted)?;
        limits::host(call)?;
        let views = call.views().map(Tensor::host_bytes).collect::<Result<_>>()?;
        let tensors = Tensors::new(self, call, views)?;
        let mut options = Options::execute();
        options.max_iterations = call.max_iterations.unwrap_or(options.max_iterations);
        let (report, left) = host::launch(self, call, fitted, shader, &tensors, options)?;
        // Without checks, only a run that did not reach its end is reported.
        if !report.is_clean() {
            let endless = report.findings.iter().any(|it| it.kind == Kind::EndlessLoop);
            let remedy = if endless { "Call::max_iterations sets another bound" } else { "" };
            return Err(Error::Misuse(report.render(shader, false) + remedy));
        }
        let keep = |(output, bytes): (&Output, Vec<u8>)| match output {
            Output::New(..) => output.holding(&call.context, &bytes),
            Output::Given(tensor, _) => tensor.put(&bytes).map(|()| tensor.view()),
        };
        call.outputs.iter().zip(left).map(keep).collect()
    }

    /// Like [`run`](Self::run), for a kernel with one output.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run), and [`Misuse`](crate::Error) for a kernel with several
    /// outputs.
    pub fn run_one(&self, call: &Call) -> Result<Tensor> {
        self.one("run", || self.run(call))
    }

    /// Like [`record`](Self::record), for a kernel with one output.
    ///
    /// # Errors
    /// The errors of [`record`](Self::record), and [`Misuse`](crate::Error) for a kernel with
    /// several outputs.
    pub fn record_one(&self, to: &mut impl AsRecorder, call: &Call) -> Result<Tensor> {
        self.one("record", || self.record(to, call))
    }

    /// The only output of `outputs`. `method` is named in the error as the one that gives all.
    fn one(&self, method: &str, outputs: impl FnOnce() -> Result<Vec<Tensor>>) -> Result<Tensor> {
        if self.outputs.len() > 1 {
            return Err(Error::Misuse(format!(
                "kernel {} has {} outputs, {:?}: Kernel::{method} gives all of them",
                self.name,
                self.outputs.len(),
                self.outputs
            )));
        }
        let no_output = || Error::Shape(format!("kernel {} has no outputs", self.name));
        outputs()?.pop().ok_or_else(no_output)
    }

    /// Runs the call under the sanitizer. By default it reports races, accesses out of bounds,
    /// reads of memory that was not written, elements of outputs that were not written, and
    /// barriers that not all invocations reach; it counts costs. It runs on copies: tensors that
    /// the call gives as outputs keep their elements. It does not block while the device works; the
    /// sanitizer itself runs on the calling thread.
    ///
    /// Subgroups have 32 invocations ([`Options::subgroup_size`]), on every device, and kernels
    /// with f16 can be checked on devices without f16.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run), but findings are no errors; [`Misuse`](crate::Error) when
    /// an input lies in a given buffer without `COPY_SRC`.
    pub async fn check(&self, call: &Call, mut options: Options) -> Result<Check> {
        let fitted = Fitted::new(self, call)?;
        let shader = fitted.shader(self, call)?;
        limits::host(call)?;
        options.max_iterations = call.max_iterations.unwrap_or(options.max_iterations);
        let mut views = Vec::new();
        for tensor in call.views() {
            views.push(tensor.extent_bytes().await?);
        }
        let tensors = Tensors::new(self, call, views)?;
        let (report, left) = host::launch(self, call, &fitted, &shader, &tensors, options)?;
        let copy = |(output, bytes): (&Output, Vec<u8>)| output.holding(&call.context, &bytes);
        let outputs = call.outputs.iter().zip(left).map(copy).collect::<Result<_>>()?;
        Ok(Check { report, outputs, shader })
    }

    /// Like [`check`](Self::check), blocking.
    ///
    /// # Errors
    /// The errors of [`check`](Self::check).
    #[cfg(not(target_family = "wasm"))]
    pub fn check_blocking(&self, call: &Call, options: Options) -> Result<Check> {
        pollster::block_on(self.check(call, options))
    }

    /// The generated module.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run), except those that only validation of the text finds.
    pub fn wgsl(&self, call: &Call) -> Result<String> {
        Ok(Fitted::new(self, call)?.generated().text.clone())
    }

    /// The kernel that copies a view, and the kernel that brings the copy back, with their calls,
    /// for tests of their texts.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for a view that spans too much, `DeviceLimit` for its copy.
    #[doc(hidden)]
    pub fn copies(view: &Tensor) -> Result<[(Kernel, Call); 2]> {
        let copy = Tensor::zeros(view.context(), DType::U32, &[view.elem_count()])?;
        Ok([contiguous::gather(view)?, contiguous::scatter(&copy, view)?])
    }

    /// The generated module as naga translates it for Metal, with the checks that wgpu asks for. On
    /// a device, the numbers of the buffers may differ.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run); [`Misuse`](crate::Error) for what MSL cannot express.
    pub fn msl(&self, call: &Call) -> Result<String> {
        msl::translate(&Fitted::new(self, call)?.shader(self, call)?)
    }

    fn show(&self, call: &Call, fitted: &Fitted) -> Result<()> {
        if self.verbose {
            let text = self.told(call, fitted, call.context.backend_name() == "metal")?;
            #[cfg(not(target_family = "wasm"))]
            eprint!("{text}");
            #[cfg(target_family = "wasm")]
            log::info!("{text}");
        }
        Ok(())
    }

    /// The text that a verbose kernel prints.
    fn told(&self, call: &Call, fitted: &Fitted, metal: bool) -> Result<String> {
        let mut text = format!("// kernel {} as WGSL\n{}", self.name, fitted.generated().text);
        if metal {
            text += &format!(
                "// kernel {} as MSL\n{}",
                self.name,
                msl::translate(&fitted.shader(self, call)?)?
            );
        }
        Ok(text)
    }
}

/// The blocks of a file of shader text after the first, which says what the file is. Empty lines
/// part the blocks. Words in capitals stand for what a kernel puts there.
pub(crate) fn blocks<const N: usize>(text: &str) -> [&str; N] {
    let mut blocks = text.split_inclusive("\n\n").skip(1);
    let mut next = || blocks.next().and_then(|block| block.get(..block.trim_end().len() + 1));
    std::array::from_fn(|_| next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, DType};

    #[test]
    fn what_a_verbose_kernel_prints() {
        let context = Context::cpu();
        let call = Call::new(&context).output(DType::U32, &[3]).grid([3, 1, 1]);
        let kernel =
            Kernel::new("count").outputs(["out"]).source("out[global_id.x] = global_id.x;");
        let fitted = Fitted::new(&kernel, &call).unwrap();
        let text = kernel.told(&call, &fitted, false).unwrap();
        assert!(
            text.starts_with("// kernel count as WGSL\n")
                && text.contains("out[global_id.x] = global_id.x;"),
            "{text}"
        );
        assert!(!text.contains("metal"));
        let text = kernel.told(&call, &fitted, true).unwrap();
        assert!(
            text.contains("// kernel count as MSL\n") && text.contains("kernel void main_("),
            "{text}"
        );
    }
}
