//! The definition of a kernel: names, a header and a body.

use super::known::Known;

/// A custom kernel: the body of a compute shader in WGSL, and the names of the tensors that it
/// reads and writes.
///
/// By name, the body sees
///
/// - the inputs, to be read, as `array<T>` of the given tensor's type, and the outputs, to be
///   written (and read, once written). bf16, which WGSL does not have, comes as `array<u32>`, two
///   elements to a word, the first in the lower half;
/// - for each tensor `a`, `a_shape` and `a_strides` (arrays of `u32`, strides in elements) and
///   `a_ndim`. For a tensor without dimensions they are \[1\], \[1\] and 0;
/// - for each tensor `a`, `a_row(i)`: the place of the first element of row i along the last axis,
///   in elements from the view's first, by `a_strides`. For f32, f16 and bf16 also the functions
///   below;
/// - `global_id`, `local_id`, `workgroup_id`, `num_workgroups` (`vec3<u32>`), `local_index`
///   (`u32`), `grid` (`vec3<u32>`, the size asked for), and on devices with subgroups
///   `subgroup_id`, `num_subgroups`, `subgroup_size`, `subgroup_invocation_id` (`u32`);
/// - the templates and values of the [`Call`](crate::Call), and what the header declares.
///
/// Only what is mentioned is generated. `var<workgroup>` declarations in the body, and `const`
/// declarations outside its blocks, move to module scope: a body can be a whole kernel. The header
/// sees tensors, their functions and templates. It sees no shapes, no strides, no values, no `grid`
/// and no built-ins: its functions take these as arguments. Directives in the header (`enable
/// f16;`) move to the front. f16 is enabled automatically if the text or a tensor uses it. An array
/// of f16 or of bf16 words with an odd number of elements, or with none, is bound up to the next
/// word; `arrayLength` may then count one element more.
///
/// # One body for f32, f16 and bf16
///
/// - `a_load(i)` is element i as `f32`. `a_load2(i)` and `a_load4(i)` are a `vec2<f32>` and a
///   `vec4<f32>` of the elements from i on.
/// - `out_store(i, x)` stores an `f32`, rounded to nearest even. `out_store2` and `out_store4`
///   store a vector; i must be even.
///
/// i counts elements from the first one of the view; `a_strides` leads to others. The functions do
/// not need f16 on the device, and give the same bits on all devices: numbers of 16 bits are halves
/// of words, which integers convert. `out_store` changes half of a word by an atomic, so
/// invocations may store neighbours. Vectors are stored as whole words, which is faster. If
/// `out_store` occurs, the sanitizer checks an output of 16 bits by words. A text that calls
/// functions of such a tensor must not mention the tensor itself.
///
/// ```
/// use half::bf16;
/// use tilewise::{Call, Context, DType, Kernel, Tensor};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let double = Kernel::new("double")
///     .inputs(["a"])
///     .outputs(["out"])
///     .source("let i = global_id.x; out_store(i, 2.0 * a_load(i));");
/// let floats = Tensor::upload(&ctx, &[1.0f32, 2.5, -3.0], &[3])?;
/// let halves = Tensor::upload(&ctx, &[1.0, 2.5, -3.0].map(bf16::from_f32), &[3])?;
/// for a in [floats, halves] {
///     let call = Call::of(&a).output(a.dtype(), &[3]).grid([3, 1, 1]);
///     assert_eq!(double.run_one(&call)?.read_f32_blocking()?, [2.0, 5.0, -6.0]);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Checks and limits
///
/// naga checks the text before any device sees it, and its errors name line and column of the body
/// or the header. What naga takes and WGSL has not is refused, too: numbers of 64 bits, integers of
/// 16, `&&` beside `||`. A browser or a driver may refuse still more, such as a barrier that it
/// cannot prove uniform. Then the call, or in a browser the next read or wait, is an error with its
/// words, whose lines count in the [generated module](Self::wgsl). Shaders are created with naga's
/// bounds checks, and compiled once per context and text. A kernel that is kept remembers what was
/// generated: calls like earlier ones are recorded in microseconds, whatever their shapes and
/// values.
///
/// The CPU executor keeps to WebGPU's default limits on workgroups (256 invocations, 256 × 256 × 64
/// along the axes), workgroup memory (16,384 bytes), the grid (65,535 workgroups along an axis) and
/// storage buffers (8). It does not keep to the limits on the size of buffers, which may have up to
/// 4 GiB − 4 bytes. It has f16, ends loops at
/// [`Call::max_iterations`](crate::Call::max_iterations), and reads 0 out of bounds.
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
/// let call = Call::of(&a).output(DType::F32, &[3]).grid([3, 1, 1]);
/// let call = call.dtype("T", DType::F32).constant("N", 5u32);
/// assert_eq!(kernel.run_one(&call)?.read_blocking::<f32>()?, [10.0, 20.0, 30.0]);
///
/// let check = kernel.check_blocking(&call, Default::default())?; // the same under the sanitizer
/// assert!(check.is_clean(), "{}", check.render(false));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a kernel does nothing until it is run or recorded"]
pub struct Kernel {
    pub(super) name: String,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) header: String,
    pub(super) source: String,
    pub(super) contiguous: bool,
    pub(super) atomic: bool,
    pub(super) verbose: bool,
    /// Names of the tensors that are read and written four elements at a time.
    pub(super) fours: Vec<String>,
    /// Whether the text is the library's: its loops end, and loops marked `//unroll` are unrolled.
    pub(super) ours: bool,
    /// The modules that were generated from the kernel. A changed kernel begins with none.
    pub(super) known: Known,
}

impl Kernel {
    /// A kernel as yet without names and body. Messages call it `name`, such as `scale (body):1:5`.
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
            fours: Vec::new(),
            ours: false,
            known: Known::default(),
        }
    }

    /// Forgets the generated modules, because the text has changed.
    fn anew(self) -> Self {
        Kernel { known: Known::default(), ..self }
    }

    /// Sets the names of the inputs.
    pub fn inputs<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.inputs = names.into_iter().map(str::to_owned).collect();
        self.anew()
    }

    /// Sets the names of the outputs; there must be at least one. Tensors that the kernel changes
    /// in place are outputs, too: the call says so ([`Call::inout`](crate::Call::inout)).
    pub fn outputs<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.outputs = names.into_iter().map(str::to_owned).collect();
        self.anew()
    }

    /// Sets the text outside the function: structs, functions, aliases, directives.
    pub fn header(mut self, text: impl Into<String>) -> Self {
        self.header = text.into();
        self.anew()
    }

    /// Sets the body of the function.
    pub fn source(mut self, body: impl Into<String>) -> Self {
        self.source = body.into();
        self.anew()
    }

    /// Whether inputs that are not row-major are copied first. On by default: `a[i]` is element i
    /// in row-major order, and `a_strides` agrees. Given outputs are copied before, and brought
    /// back afterwards. If off, the body must follow `a_strides`; a view is still copied if the
    /// device cannot bind it where it starts, unless the text uses only its functions (`a_load`).
    pub fn ensure_contiguous(mut self, ensure: bool) -> Self {
        self.contiguous = ensure;
        self.anew()
    }

    /// Makes the outputs `array<atomic<u32>>` or `array<atomic<i32>>`; they must be of u32 or i32.
    /// Off by default. The body must then read and write them only by `atomicLoad`, `atomicStore`
    /// and the like: `out[0] = 1u`, which naga lets pass, is an error in browsers.
    pub fn atomic_outputs(mut self, atomic: bool) -> Self {
        self.atomic = atomic;
        self.anew()
    }

    /// Names tensors that the text reads and writes only by `a_load4` and `out_store4`, with i a
    /// multiple of 4. Every call must give views of them that begin and end between such blocks of
    /// four in memory.
    pub(crate) fn in_fours<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.fours = names.into_iter().map(str::to_owned).collect();
        self.anew()
    }

    /// Marks the text as the library's. It does without wgpu's bound of every loop and without
    /// zeroed memory. Loops marked `//unroll` are unrolled if the shaders of products are
    /// ([`Caps::unrolls`](tilewise_core::Caps::unrolls)).
    pub(crate) fn ours(mut self) -> Self {
        self.ours = true;
        self.anew()
    }

    /// Prints the generated module to stderr whenever the kernel runs, and on Metal its
    /// translation; in a browser to the log. Off by default.
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }
}
