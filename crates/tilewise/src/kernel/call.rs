//! One use of a kernel: tensors, sizes, template arguments.

use super::device;
use super::output::{Output, Slot};
use crate::context::Context;
use crate::host::memory;
use crate::tensor::{Tensor, count};
use tilewise_core::{DType, Error, Result, convert};

/// The rule for invocations beyond the grid, if it ends inside a workgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Edge {
    /// Invocations beyond the grid do not run the body, as with Metal's `dispatchThreads`. A body
    /// with barriers cannot be clipped, because all invocations of a workgroup must reach them: it
    /// is an error, unless the grid is a multiple of the workgroup along each axis and
    /// nothing is clipped. Subgroup operations are permitted: clipped invocations take no part in
    /// them. Browsers want subgroup operations in uniform control flow, and may refuse a clipped
    /// body that has some; then take [`Whole`](Self::Whole).
    #[default]
    Clip,
    /// All invocations of every workgroup run the body. The body must guard itself by `grid`, the
    /// size asked for.
    Whole,
}

/// A number for a kernel, as a template constant or a value. `u32`, `i32`, `f32` and `bool` convert
/// to it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Constant {
    /// `u32`.
    U32(u32),
    /// `i32`.
    I32(i32),
    /// `f32`. Infinities and NaN have no literal in WGSL, and are refused as constants.
    F32(f32),
    /// `bool`.
    Bool(bool),
}

impl Constant {
    /// A number for its type.
    pub(super) fn kind(self) -> u8 {
        match self {
            Constant::U32(_) => 0,
            Constant::I32(_) => 1,
            Constant::F32(_) => 2,
            Constant::Bool(_) => 3,
        }
    }

    pub(super) fn bits(self) -> u32 {
        match self {
            Constant::U32(value) => value,
            Constant::I32(value) => value as u32,
            Constant::F32(value) => value.to_bits(),
            Constant::Bool(value) => value.into(),
        }
    }
}

impl From<u32> for Constant {
    fn from(value: u32) -> Self {
        Constant::U32(value)
    }
}

impl From<i32> for Constant {
    fn from(value: i32) -> Self {
        Constant::I32(value)
    }
}

impl From<f32> for Constant {
    fn from(value: f32) -> Self {
        Constant::F32(value)
    }
}

impl From<bool> for Constant {
    fn from(value: bool) -> Self {
        Constant::Bool(value)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Template {
    DType(DType),
    Constant(Constant),
}

/// One use of a [`Kernel`](crate::Kernel): its tensors in the order of the kernel's names, the
/// number of invocations, and the meanings of its templates.
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until a kernel runs it"]
pub struct Call {
    pub(super) context: Context,
    pub(super) inputs: Vec<Tensor>,
    pub(super) outputs: Vec<Output>,
    pub(super) grid: Option<[u32; 3]>,
    pub(super) workgroup: [u32; 3],
    pub(super) templates: Vec<(String, Template)>,
    pub(super) values: Vec<(String, Constant)>,
    pub(super) init: Option<f64>,
    pub(super) edge: Edge,
    pub(super) max_iterations: Option<u64>,
}

impl Call {
    /// A call on this context, as yet without tensors and without a grid.
    pub fn new(context: &Context) -> Self {
        Call {
            context: context.clone(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            grid: None,
            workgroup: [64, 1, 1],
            templates: Vec::new(),
            values: Vec::new(),
            init: None,
            edge: Edge::default(),
            max_iterations: None,
        }
    }

    /// A call on the context of this tensor, which is its first input.
    pub fn of(tensor: &Tensor) -> Self {
        Call::new(tensor.context()).input(tensor)
    }

    /// Adds the next input. Any view will do; the call shares its storage.
    pub fn input(mut self, tensor: &Tensor) -> Self {
        self.inputs.push(tensor.clone());
        self
    }

    /// Adds the next output: type and shape of a tensor that the kernel's
    /// [`run`](crate::Kernel::run) makes.
    pub fn output(mut self, dtype: DType, shape: &[usize]) -> Self {
        self.outputs.push(Output::New(dtype, shape.to_vec()));
        self
    }

    /// Adds the next output: this tensor, which may be a view. As with [`output`](Self::output),
    /// the kernel must write all of it and read nothing that it has not written; otherwise take
    /// [`inout`](Self::inout).
    ///
    /// The output may lie in the buffer of another tensor of the call, such as another row of a
    /// cache, but must not overlap that tensor. Views that are not row-major go by way of a copy,
    /// unless [`ensure_contiguous`](crate::Kernel::ensure_contiguous) is off. Views that start or
    /// end where the device cannot bind them are copied, too. Functions (`out_store`) write a row
    /// of a cache without copies.
    ///
    /// ```
    /// use tilewise::{Call, Context, DType, Kernel, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let double = Kernel::new("double")
    ///     .inputs(["a"])
    ///     .outputs(["out"])
    ///     .source("let i = global_id.x; out[i] = 2.0 * a[i];");
    /// let rows = Tensor::zeros(&ctx, DType::F32, &[3, 2])?;
    /// let a = Tensor::upload(&ctx, &[1.0f32, 4.0], &[2])?;
    /// let second = rows.slice(&[1..2, 0..2])?;
    /// double.run(&Call::of(&a).output_into(&second).grid([2, 1, 1]))?;
    /// assert_eq!(rows.read_blocking::<f32>()?, [0.0, 0.0, 2.0, 8.0, 0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn output_into(mut self, tensor: &Tensor) -> Self {
        self.outputs.push(Output::Given(tensor.clone(), false));
        self
    }

    /// Like [`output_into`](Self::output_into), for a tensor that the kernel may also read.
    /// Elements that the kernel does not write stay. Its name is among the kernel's outputs, so one
    /// body serves new tensors and given ones.
    ///
    /// ```
    /// use tilewise::{Call, Context, Kernel, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let descend = Kernel::new("descend")
    ///     .inputs(["slope"])
    ///     .outputs(["w"])
    ///     .source("let i = global_id.x; w[i] -= 0.5 * slope[i];");
    /// let w = Tensor::upload(&ctx, &[1.0f32, 2.0], &[2])?;
    /// let slope = Tensor::upload(&ctx, &[2.0f32, -4.0], &[2])?;
    /// descend.run(&Call::of(&slope).inout(&w).grid([2, 1, 1]))?;
    /// assert_eq!(w.read_blocking::<f32>()?, [0.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn inout(mut self, tensor: &Tensor) -> Self {
        self.outputs.push(Output::Given(tensor.clone(), true));
        self
    }

    /// Sets the numbers of invocations along x, y and z. They run in whole workgroups;
    /// [`edge`](Self::edge) says what happens to invocations beyond the grid. Nothing runs if a
    /// size is 0.
    pub fn grid(mut self, threads: [u32; 3]) -> Self {
        self.grid = Some(threads);
        self
    }

    /// Sets the numbers of invocations of one workgroup along x, y and z; 64, 1, 1 by default.
    pub fn workgroup(mut self, size: [u32; 3]) -> Self {
        self.workgroup = size;
        self
    }

    /// Makes `name` stand for a type: `alias T = f32;`. It takes f32, f16, i32 and u32; WGSL has no
    /// bf16.
    pub fn dtype(mut self, name: &str, dtype: DType) -> Self {
        self.templates.push((name.to_owned(), Template::DType(dtype)));
        self
    }

    /// Makes `name` stand for a constant: `const N: u32 = 4u;`. Each constant compiles another
    /// shader, so a number that changes from call to call should be a [`value`](Self::value).
    pub fn constant(mut self, name: &str, value: impl Into<Constant>) -> Self {
        self.templates.push((name.to_owned(), Template::Constant(value.into())));
        self
    }

    /// Gives `name` a value that may change from call to call: another value compiles nothing. The
    /// body reads it by its name; the header's functions take it as an argument.
    ///
    /// ```
    /// use tilewise::{Call, Context, Kernel, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let descend = Kernel::new("descend")
    ///     .inputs(["slope"])
    ///     .outputs(["w"])
    ///     .source("let i = global_id.x; w[i] -= rate * slope[i];");
    /// let w = Tensor::upload(&ctx, &[1.0f32, 2.0], &[2])?;
    /// let slope = Tensor::upload(&ctx, &[2.0f32, -4.0], &[2])?;
    /// for rate in [0.5f32, 0.25] {
    ///     descend.run(&Call::of(&slope).inout(&w).value("rate", rate).grid([2, 1, 1]))?;
    /// }
    /// assert_eq!(w.read_blocking::<f32>()?, [-0.5, 5.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn value(mut self, name: &str, value: impl Into<Constant>) -> Self {
        self.values.push((name.to_owned(), value.into()));
        self
    }

    /// Fills every output that the call makes with this value first. Floats round it; for integers
    /// it must be an integer in their range. Without it an output's contents are undefined until
    /// the kernel writes them.
    pub fn init_value(mut self, value: impl Into<f64>) -> Self {
        self.init = Some(value.into());
        self
    }

    /// Sets the rule for invocations beyond the grid; [`Edge::Clip`] by default.
    pub fn edge(mut self, edge: Edge) -> Self {
        self.edge = edge;
        self
    }

    /// Sets the most iterations that one loop may take on the CPU executor and in the sanitizer;
    /// 1,000,000 by default. A loop with more counts as endless: an error of
    /// [`run`](crate::Kernel::run), a finding of [`check`](crate::Kernel::check). In
    /// [`check`](crate::Kernel::check) it replaces the bound of the options. GPUs have no
    /// bound.
    pub fn max_iterations(mut self, iterations: u64) -> Self {
        self.max_iterations = Some(iterations);
        self
    }

    /// Whether the grid ends between workgroups along each axis: nothing is clipped then.
    pub(super) fn is_aligned(&self) -> bool {
        let grid = self.grid.unwrap_or_default();
        grid.iter().zip(&self.workgroup).all(|(&grid, &size)| size > 0 && grid.is_multiple_of(size))
    }

    /// Whether there is nothing to run: no invocations, or outputs that are all empty.
    pub(super) fn is_idle(&self) -> bool {
        let empty = |output: &Output| output.shape().contains(&0);
        self.grid.is_some_and(|grid| grid.contains(&0)) || self.outputs.iter().all(empty)
    }

    /// The tensors given to the call: inputs, then outputs.
    pub(super) fn views(&self) -> impl Iterator<Item = &Tensor> {
        self.inputs.iter().chain(self.outputs.iter().filter_map(Output::given))
    }

    /// The number of bytes that are bound of each given tensor.
    pub(crate) fn bound(&self) -> impl Iterator<Item = Result<u64>> {
        self.views().map(device::bound)
    }

    /// An input, or a given output.
    pub(super) fn tensor(&self, slot: Slot) -> Option<&Tensor> {
        match slot {
            Slot::Input(i) => Some(&self.inputs[i]),
            Slot::Output(i) => self.outputs[i].given(),
        }
    }

    /// Whether an output holds something before the kernel writes it.
    pub(super) fn is_filled(&self, output: usize) -> bool {
        match &self.outputs[output] {
            Output::New(..) => self.init.is_some(),
            Output::Given(_, inout) => *inout,
        }
    }

    /// The tensors of the outputs: given tensors, and new ones, filled if the call has an initial
    /// value.
    pub(super) fn tensors(&self) -> Result<Vec<Tensor>> {
        let tensor = |output: &Output| match output {
            Output::New(dtype, shape) => self.new_output(*dtype, shape),
            Output::Given(tensor, _) => Ok(tensor.view()),
        };
        self.outputs.iter().map(tensor).collect()
    }

    /// A new tensor for an output, filled if the call has an initial value.
    pub(super) fn new_output(&self, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        match self.filled(dtype, shape)? {
            Some(bytes) => Tensor::from_bytes(&self.context, dtype, &bytes, shape),
            None => Tensor::zeros(&self.context, dtype, shape),
        }
    }

    /// The initial bytes of an output; `None` if the call has no initial value.
    pub(super) fn filled(&self, dtype: DType, shape: &[usize]) -> Result<Option<Vec<u8>>> {
        let Some(value) = self.init else { return Ok(None) };
        let range = match dtype {
            DType::I32 => Some(f64::from(i32::MIN)..=f64::from(i32::MAX)),
            DType::U32 => Some(0.0..=f64::from(u32::MAX)),
            DType::F32 | DType::F16 | DType::BF16 => None,
        };
        if range.is_some_and(|range| value.fract() != 0.0 || !range.contains(&value)) {
            return Err(Error::Misuse(format!(
                "an output of {dtype} cannot hold the initial value {value}"
            )));
        }
        let element = match dtype {
            DType::I32 => (value as i32).to_le_bytes().to_vec(),
            DType::U32 => (value as u32).to_le_bytes().to_vec(),
            float => convert::encode(float, &[convert::round_f64(float, value) as f32]),
        };
        let elements = count(shape)?;
        let too_many =
            || Error::Shape(format!("overflow: an output of {dtype} of shape {shape:?}"));
        let len = elements.checked_mul(element.len()).ok_or_else(too_many)?;
        let mut bytes = memory::room(len)?;
        bytes.extend(element.iter().cycle().take(len));
        Ok(Some(bytes))
    }
}
