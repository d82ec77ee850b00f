//! One use of a kernel: tensors, sizes, template arguments.

use crate::context::Context;
use crate::memory;
use crate::tensor::{Tensor, count};
use tilewise_core::{DType, Error, Result};

/// What happens where the grid ends inside a workgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Edge {
    /// Invocations beyond the grid do not run the body, as with Metal's `dispatchThreads`. A body
    /// with barriers cannot be clipped, because all invocations of a workgroup must reach them: it
    /// is an `Error::Kernel`, unless the grid is a multiple of the workgroup along each axis, so
    /// that nothing is clipped. Subgroup operations are permitted: clipped invocations take no part
    /// in them. Browsers want subgroup operations in uniform control flow, and may refuse a clipped
    /// body that has some; then take [`Whole`](Self::Whole).
    #[default]
    Clip,
    /// All invocations of every workgroup run the body, which guards itself by `grid`, the size
    /// asked for.
    Whole,
}

/// The value of a template constant: made from `u32`, `i32`, `f32` or `bool`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Constant {
    /// `u32`.
    U32(u32),
    /// `i32`.
    I32(i32),
    /// `f32`. Infinities and NaN have no literal in WGSL, and are refused.
    F32(f32),
    /// `bool`.
    Bool(bool),
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

/// One use of a [`Kernel`](crate::Kernel): its tensors in the order of the kernel's names, how many
/// invocations, and what its templates stand for.
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until a kernel runs it"]
pub struct Call {
    pub(super) context: Context,
    pub(super) inputs: Vec<Tensor>,
    pub(super) outputs: Vec<(DType, Vec<usize>)>,
    pub(super) grid: Option<[u32; 3]>,
    pub(super) workgroup: [u32; 3],
    pub(super) templates: Vec<(String, Template)>,
    pub(super) init: Option<f64>,
    pub(super) edge: Edge,
    pub(super) max_iterations: Option<u64>,
}

impl Call {
    /// A call on this context, as yet without tensors and grid.
    pub fn new(context: &Context) -> Self {
        Call {
            context: context.clone(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            grid: None,
            workgroup: [64, 1, 1],
            templates: Vec::new(),
            init: None,
            edge: Edge::default(),
            max_iterations: None,
        }
    }

    /// The next input. Any view will do; the call shares its storage.
    pub fn input(mut self, tensor: &Tensor) -> Self {
        self.inputs.push(tensor.clone());
        self
    }

    /// The next output: type and shape of a tensor that the kernel's [`run`](crate::Kernel::run)
    /// makes.
    pub fn output(mut self, dtype: DType, shape: &[usize]) -> Self {
        self.outputs.push((dtype, shape.to_vec()));
        self
    }

    /// Invocations along x, y and z. They run in whole workgroups; [`edge`](Self::edge) says what
    /// happens to invocations beyond the grid. Nothing runs when a size is 0.
    pub fn grid(mut self, threads: [u32; 3]) -> Self {
        self.grid = Some(threads);
        self
    }

    /// Invocations of one workgroup along x, y and z; 64, 1, 1 by default.
    pub fn workgroup(mut self, size: [u32; 3]) -> Self {
        self.workgroup = size;
        self
    }

    /// Makes `name` stand for a type: `alias T = f32;`. For f32, f16, i32 and u32; WGSL has no
    /// bf16.
    pub fn dtype(mut self, name: &str, dtype: DType) -> Self {
        self.templates.push((name.to_owned(), Template::DType(dtype)));
        self
    }

    /// Makes `name` stand for a constant: `const N: u32 = 4u;`. Each value is compiled as another
    /// shader, so a number that changes from call to call should be an input.
    pub fn constant(mut self, name: &str, value: impl Into<Constant>) -> Self {
        self.templates.push((name.to_owned(), Template::Constant(value.into())));
        self
    }

    /// Fills every output with this value first: rounded for floats, an integer within range for
    /// integers. Without it an output's contents are undefined until the kernel writes them.
    pub fn init_value(mut self, value: impl Into<f64>) -> Self {
        self.init = Some(value.into());
        self
    }

    /// What happens where the grid ends inside a workgroup; [`Edge::Clip`] by default.
    pub fn edge(mut self, edge: Edge) -> Self {
        self.edge = edge;
        self
    }

    /// The most iterations that one loop may take on the CPU executor and in the sanitizer. A loop
    /// with more counts as endless: an error of [`run`](crate::Kernel::run), a finding of
    /// [`check`](crate::Kernel::check). GPUs have no such bound. By default it is 16,777,216
    /// (1 << 24) for `run` on [`Context::cpu`] and 1,000,000 for `check`, which is slower. In
    /// [`check_with`](crate::Kernel::check_with) it replaces the bound of the options.
    pub fn max_iterations(mut self, iterations: u64) -> Self {
        self.max_iterations = Some(iterations);
        self
    }

    /// Whether the grid ends between workgroups along each axis, so that there is nothing to clip.
    pub(super) fn is_aligned(&self) -> bool {
        let grid = self.grid.unwrap_or_default();
        grid.iter().zip(&self.workgroup).all(|(&grid, &size)| size > 0 && grid.is_multiple_of(size))
    }

    /// Whether there is nothing to run: no invocations, or outputs that are all empty.
    pub(super) fn is_idle(&self) -> bool {
        let empty = |(_, shape): &(DType, Vec<usize>)| shape.contains(&0);
        self.grid.is_some_and(|grid| grid.contains(&0)) || self.outputs.iter().all(empty)
    }

    /// New tensors for the outputs, filled if so asked.
    pub(super) fn allocate(&self) -> Result<Vec<Tensor>> {
        self.outputs.iter().map(|(dtype, shape)| self.new_output(*dtype, shape)).collect()
    }

    /// A new tensor for an output, filled if so asked.
    pub(super) fn new_output(&self, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        match self.filled(dtype, shape)? {
            Some(bytes) => Tensor::from_bytes(&self.context, dtype, &bytes, shape),
            None => Tensor::zeros(&self.context, dtype, shape),
        }
    }

    /// The bytes with which an output begins; `None` where that is nobody's business.
    pub(super) fn filled(&self, dtype: DType, shape: &[usize]) -> Result<Option<Vec<u8>>> {
        let Some(value) = self.init else { return Ok(None) };
        let range = match dtype {
            DType::I32 => Some(f64::from(i32::MIN)..=f64::from(i32::MAX)),
            DType::U32 => Some(0.0..=f64::from(u32::MAX)),
            DType::F32 | DType::F16 | DType::BF16 => None,
        };
        if range.is_some_and(|range| value.fract() != 0.0 || !range.contains(&value)) {
            return Err(Error::InvalidValue(format!(
                "an initial value of {value} for an output of {dtype}"
            )));
        }
        let element = match dtype {
            DType::I32 => (value as i32).to_le_bytes().to_vec(),
            DType::U32 => (value as u32).to_le_bytes().to_vec(),
            DType::F16 => half::f16::from_f64(value).to_le_bytes().to_vec(),
            DType::BF16 => half::bf16::from_f64(value).to_le_bytes().to_vec(),
            DType::F32 => (value as f32).to_le_bytes().to_vec(),
        };
        let elements = count(shape)?;
        let too_many = || Error::Overflow(format!("an output of {dtype} of shape {shape:?}"));
        let len = elements.checked_mul(element.len()).ok_or_else(too_many)?;
        let mut bytes = memory::room(len)?;
        bytes.extend(element.iter().cycle().take(len));
        Ok(Some(bytes))
    }
}
