//! Kernels of the caller's own, of which only the body is written: WGSL, with the signature, the bindings and the sizes generated around it. After
//! `mlx.fast.metal_kernel`.

mod call;
mod contiguous;
mod device;
mod generate;
mod host;
mod limits;
mod msl;
mod names;
mod text;

pub use call::{Call, Constant, Edge};

use crate::context::Backend;
use crate::tensor::Tensor;
use generate::Generated;
use host::Loaded;
use names::Names;
use tilewise_core::{Error, Result};
use tilewise_sanitizer::{Options, Report, Shader};

/// Iterations of a loop that the CPU executor runs before it gives up, unless the call says how many.
const MAX_ITERATIONS: u64 = 1 << 24;

/// A kernel of the caller's own: the body of a compute shader in WGSL, and the names of what it reads and writes.
///
/// By name, the body sees
///
/// - the inputs, `array<T>` of the type of the tensor given, to be read; the outputs, to be written too (and read, once written). bf16, which
///   WGSL does not have, comes as `array<u32>`, two elements to a word, the first in the lower half;
/// - of each, `a_shape` and `a_strides` (arrays of `u32`, strides in elements) and `a_ndim`; those of a tensor without dimensions are \[1\], \[1\] and 0;
/// - `global_id`, `local_id`, `workgroup_id`, `num_workgroups` (`vec3<u32>`), `local_index` (`u32`), `grid` (`vec3<u32>`, the size asked for), and on
///   devices with subgroups `subgroup_id`, `num_subgroups`, `subgroup_size`, `subgroup_invocation_id` (`u32`);
/// - the templates of the [`Call`], and what the header declares.
///
/// Only what is mentioned is generated. `var<workgroup>` declarations in the body, and `const` ones outside its blocks, move to module scope, so that
/// a body is a whole kernel. The header sees tensors and templates, but neither shapes, strides and `grid` nor the built-ins, which its functions take
/// as arguments; directives in it (`enable f16;`) move to the front, and f16 is enabled by
/// itself where it occurs. An array of f16 or of bf16 words with an odd number of elements, and one of no elements, is bound up to the next word, so that
/// `arrayLength` may count one element more.
///
/// The text is checked before any device sees it, so that an error reads the same everywhere, and names line and column of the body or the header.
/// naga's numbers of 64 bits, and its integers of 16, are refused everywhere. Shaders are created with naga's bounds checks, and compiled once per
/// context and text.
///
/// The CPU executor keeps to WebGPU's default limits on workgroups (256 invocations, 256 × 256 × 64 along the axes), workgroup memory (16,384
/// bytes), the grid (65,535 workgroups along an axis) and storage buffers (8); not to those on the size of buffers, which may have up to
/// 4 GiB − 4 bytes. It has f16, ends loops at [`Call::max_iterations`], and gives 0 for what is read out of bounds.
///
/// ```
/// use tilewise::{Call, Context, DType, Kernel, Tensor};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let kernel = Kernel::new("scale")
///     .inputs(["a"])
///     .outputs(["out"])
///     .header("fn twice(x: f32) -> f32 { return x + x; }")
///     .source("let i = global_id.x; out[i] = T(twice(f32(a[i]))) * T(N);");
///
/// let a = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0], &[3])?;
/// let call = Call::new(&ctx).input(&a).output(DType::F32, &[3]).grid([3, 1, 1]).dtype("T", DType::F32).constant("N", 5u32);
/// assert_eq!(kernel.run(&call)?[0].read_blocking::<f32>()?, [10.0, 20.0, 30.0]);
///
/// let check = kernel.check(&call)?; // the same under the sanitizer
/// assert!(check.is_clean(), "{}", check.render(false));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Kernel {
    name: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    header: String,
    source: String,
    contiguous: bool,
    atomic: bool,
    verbose: bool,
}

/// What the sanitizer found in a call.
#[derive(Debug)]
#[non_exhaustive]
pub struct Check {
    /// Findings and counters.
    pub report: Report,
    /// The outputs as the sanitizer's run left them, on the call's context.
    pub outputs: Vec<Tensor>,
    /// The generated module, into which the findings point.
    pub shader: Shader,
}

impl Check {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.report.is_clean()
    }

    /// The findings for people, pointing into the body and the header; empty when there are none. `color` adds ANSI colours.
    pub fn render(&self, color: bool) -> String {
        self.report.render(&self.shader, color)
    }
}

/// A call that fits its kernel and the device: the module, and how it is dispatched.
struct Prepared {
    generated: Generated,
    grid: [u32; 3],
    workgroups: [u32; 3],
}

impl Prepared {
    /// The module, parsed and validated, and every output written.
    fn shader(&self, kernel: &Kernel, call: &Call) -> Result<Shader> {
        let shader = self.parse(kernel, call)?;
        limits::written(kernel, call, &self.generated)?;
        Ok(shader)
    }

    /// The module, parsed and validated.
    fn parse(&self, kernel: &Kernel, call: &Call) -> Result<Shader> {
        let shader = Shader::parse_parts(&self.generated.text, &self.generated.parts).map_err(host::error)?;
        limits::module(kernel, call, &self.generated, &shader)?;
        Ok(shader)
    }
}

impl Kernel {
    /// A kernel as yet without names and body. `name` stands for it in messages, such as `scale (body):1:5`.
    pub fn new(name: impl Into<String>) -> Self {
        Kernel {
            name: name.into(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            header: String::new(),
            source: String::new(),
            contiguous: true,
            atomic: false,
            verbose: false,
        }
    }

    /// Names of the inputs.
    pub fn inputs<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.inputs = names.into_iter().map(Into::into).collect();
        self
    }

    /// Names of the outputs, of which there must be one at least.
    pub fn outputs<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.outputs = names.into_iter().map(Into::into).collect();
        self
    }

    /// What stands outside the function: structs, functions, aliases, directives.
    pub fn header(mut self, text: impl Into<String>) -> Self {
        self.header = text.into();
        self
    }

    /// The body of the function.
    pub fn source(mut self, body: impl Into<String>) -> Self {
        self.source = body.into();
        self
    }

    /// Whether inputs that are not row-major are copied first, as `a_strides` then says; on by default, so that `a[i]` is what it looks like. Off, the body
    /// follows `a_strides`. A view that starts where the device cannot bind it is copied all the same.
    pub fn ensure_contiguous(mut self, ensure: bool) -> Self {
        self.contiguous = ensure;
        self
    }

    /// Makes the outputs `array<atomic<u32>>` or `array<atomic<i32>>`; they must be of these types. Off by default. The body then reads and writes them by
    /// `atomicLoad`, `atomicStore` and the like alone: `out[0] = 1u`, which naga lets pass, is an error in browsers.
    pub fn atomic_outputs(mut self, atomic: bool) -> Self {
        self.atomic = atomic;
        self
    }

    /// Prints the generated module to stderr whenever the kernel runs, and on Metal what naga makes of it; in a browser to the log. Off by default.
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }

    /// Runs the kernel into new tensors, one per output. On a GPU the work is submitted, not waited for.
    ///
    /// # Errors
    /// `Kernel` for a text that is not valid or does not mention an output that is not filled, for names that cannot be, and on the CPU executor for a
    /// loop without end; `Shape` for more or fewer tensors than
    /// names; `Value` for a missing grid, a template or an initial value that cannot be written; `Unsupported` and `TooLarge` for what exceeds the
    /// device; `WrongContext` for inputs of another context; `Overflow`; `Device`, `DeviceLost`.
    pub fn run(&self, call: &Call) -> Result<Vec<Tensor>> {
        match &call.context.0.backend {
            Backend::Gpu(gpu) => {
                let mut encoder = gpu.encoder();
                let outputs = self.encode(&mut encoder, call)?;
                gpu.submit(encoder)?;
                Ok(outputs)
            }
            Backend::Cpu => {
                let prepared = self.prepare(call)?;
                let shader = prepared.shader(self, call)?;
                self.show(call, &prepared)?;
                limits::host(call, inputs(call)?)?;
                let inputs = host::load(self, call)?;
                let max_iterations = call.max_iterations.unwrap_or(MAX_ITERATIONS);
                let options = Options { max_iterations, ..Options::execute() };
                let (report, outputs) = host::launch(self, call, &prepared, &shader, &inputs, options)?;
                // Without checks, all that is reported is what could not be run to its end.
                if report.is_clean() { Ok(outputs) } else { Err(Error::Kernel(report.render(&shader, false))) }
            }
        }
    }

    /// Adds the kernel to a command encoder of the caller's, as one compute pass. Nothing is submitted; the outputs hold results once that is done.
    ///
    /// # Errors
    /// As [`run`](Self::run); `WrongContext` on the CPU executor. After an error the encoder is as good as before.
    pub fn encode(&self, encoder: &mut wgpu::CommandEncoder, call: &Call) -> Result<Vec<Tensor>> {
        let descriptor = wgpu::ComputePassDescriptor { label: Some(&self.name), timestamp_writes: None };
        self.record(&mut encoder.begin_compute_pass(&descriptor), call)
    }

    /// Adds the kernel to a compute pass of the caller's. Sets pipeline and bind group 0.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>, call: &Call) -> Result<Vec<Tensor>> {
        call.context.gpu()?;
        let prepared = self.prepare(call)?;
        self.show(call, &prepared)?;
        device::record(self, call, &prepared, pass)
    }

    /// The same call under the sanitizer, with its default options: races, accesses out of bounds, reads of what nobody wrote, parts of outputs
    /// that nobody wrote, barriers that not everybody reaches; and what it costs. Blocks until the inputs are read back.
    ///
    /// Subgroups have 32 invocations ([`Options::subgroup_size`]), whatever the device's have, and kernels with f16 can be checked on devices without.
    ///
    /// # Errors
    /// As [`run`](Self::run), but findings are no errors.
    #[cfg(not(target_family = "wasm"))]
    pub fn check(&self, call: &Call) -> Result<Check> {
        self.check_with(call, Options::default())
    }

    /// As [`check`](Self::check), with options of the caller's.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    #[cfg(not(target_family = "wasm"))]
    pub fn check_with(&self, call: &Call, options: Options) -> Result<Check> {
        pollster::block_on(self.check_async(call, options))
    }

    /// As [`check_with`](Self::check_with), without waiting for the device. The sanitizer itself runs on the calling thread.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub async fn check_async(&self, call: &Call, options: Options) -> Result<Check> {
        let prepared = self.prepare(call)?;
        let shader = prepared.shader(self, call)?;
        limits::host(call, inputs(call)?)?;
        let options = Options { max_iterations: call.max_iterations.unwrap_or(options.max_iterations), ..options };
        let mut inputs = Vec::with_capacity(call.inputs.len());
        for tensor in &call.inputs {
            inputs.push(Loaded::new(self, tensor, tensor.extent_bytes().await?)?);
        }
        let (report, outputs) = host::launch(self, call, &prepared, &shader, &inputs, options)?;
        Ok(Check { report, outputs, shader })
    }

    /// The generated module.
    ///
    /// # Errors
    /// As [`run`](Self::run), but for what validation finds in the text.
    pub fn wgsl(&self, call: &Call) -> Result<String> {
        Ok(self.prepare(call)?.generated.text)
    }

    /// What naga makes of the generated module for Metal, with checks as wgpu asks for them; the numbers of the buffers may differ there.
    ///
    /// # Errors
    /// As [`run`](Self::run); `Kernel` for what MSL cannot express.
    pub fn msl(&self, call: &Call) -> Result<String> {
        msl::translate(&self.prepare(call)?.shader(self, call)?)
    }

    /// Checks everything but the text.
    fn prepare(&self, call: &Call) -> Result<Prepared> {
        let name = &self.name;
        for (what, names, tensors) in
            [("inputs", &self.inputs, call.inputs.len()), ("outputs", &self.outputs, call.outputs.len())]
        {
            if names.len() != tensors {
                return Err(Error::Shape(format!("kernel {name} has the {what} {names:?}, the call has {tensors}")));
            }
        }
        if self.outputs.is_empty() {
            return Err(Error::Shape(format!("kernel {name} has no outputs")));
        }
        for (input, tensor) in self.inputs.iter().zip(&call.inputs) {
            call.context.same(tensor.context(), input)?;
        }
        let [inputs, outputs] = [&self.inputs, &self.outputs].map(|n| n.iter().map(String::as_str).collect::<Vec<_>>());
        let templates: Vec<_> = call.templates.iter().map(|(name, _)| name.as_str()).collect();
        let names = Names::new(name, &inputs, &outputs, &templates)?;
        let workgroups = limits::workgroups(self, call)?;
        let generated = generate::generate(self, call, &names)?;
        limits::bindings(self, call, &generated)?;
        Ok(Prepared { generated, grid: call.grid.unwrap_or_default(), workgroups })
    }

    fn show(&self, call: &Call, prepared: &Prepared) -> Result<()> {
        if self.verbose {
            let text = self.told(call, prepared, call.context.backend_name() == "metal")?;
            #[cfg(not(target_family = "wasm"))]
            eprint!("{text}");
            #[cfg(target_family = "wasm")]
            log::info!("{text}");
        }
        Ok(())
    }

    /// What a verbose kernel prints.
    fn told(&self, call: &Call, prepared: &Prepared, metal: bool) -> Result<String> {
        let mut text = format!("// kernel {} as WGSL\n{}", self.name, prepared.generated.text);
        if metal {
            text += &format!("// kernel {} as MSL\n{}", self.name, msl::translate(&prepared.shader(self, call)?)?);
        }
        Ok(text)
    }
}

/// Bytes of the inputs, each from its first element to its last or as a row-major copy, whichever is more.
fn inputs(call: &Call) -> Result<Vec<u64>> {
    let bytes =
        |tensor: &Tensor| Ok(tensor.extent()?.max((tensor.elements() as u64).saturating_mul(tensor.dtype().bytes())));
    call.inputs.iter().map(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, DType};

    #[test]
    fn what_a_verbose_kernel_prints() {
        let context = Context::cpu();
        let call = Call::new(&context).output(DType::U32, &[3]).grid([3, 1, 1]);
        let kernel = Kernel::new("count").outputs(["out"]).source("out[global_id.x] = global_id.x;");
        let prepared = kernel.prepare(&call).unwrap();
        let text = kernel.told(&call, &prepared, false).unwrap();
        assert!(
            text.starts_with("// kernel count as WGSL\n") && text.contains("out[global_id.x] = global_id.x;"),
            "{text}"
        );
        assert!(!text.contains("metal"));
        let text = kernel.told(&call, &prepared, true).unwrap();
        assert!(text.contains("// kernel count as MSL\n") && text.contains("kernel void main_("), "{text}");
    }
}
