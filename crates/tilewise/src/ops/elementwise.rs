//! Functions of the elements of one or two tensors.

pub(super) mod binary;
pub(super) mod copy;
pub(super) mod host;
pub(super) mod unary;

use super::layout::{Axes, Sizes, broadcast, float, part_of, rank};
use super::op::{Op, Output, only, sealed::Lower};
use super::rows::{Rows, in_blocks};
use super::texts::{ELEMENTWISE, Function, Step, Steps};
use crate::kernel::Constant;
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use tilewise_core::{DType, Error, Result};

/// An enum of functions. One line for each: its doc and name.
macro_rules! functions {
    ($(#[$about:meta])* $functions:ident;
     $($(#[$doc:meta])* $name:ident $title:literal;)*) => {
        $(#[$about])*
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $functions {
            $($(#[$doc])* $name,)*
        }

        impl $functions {
            /// All functions.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The function's name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $title,)*
                }
            }
        }
    };
}
pub(super) use functions;

/// A function of the elements of one tensor, or of two.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Elementwise {
    /// The operation's name, and that of its function in choices.wgsl.
    name: &'static str,
    inputs: SmallVec<[Tensor; 2]>,
    /// Whether the operation takes integers, too, and gives any type.
    any: bool,
    /// Alpha and limit of `swiglu_oai`; 0 and the factor of `scale`. Other functions do not read
    /// them.
    numbers: [f32; 2],
}

impl Elementwise {
    /// A function of one or two inputs of floats.
    pub(super) fn op(name: &'static str, inputs: &[&Tensor], numbers: [f32; 2]) -> Op<Self> {
        let inputs = inputs.iter().map(|&input| input.clone()).collect();
        Op::new(Elementwise { name, inputs, any: false, numbers })
    }

    /// A function of one input of any type.
    pub(super) fn any(name: &'static str, input: &Tensor) -> Op<Self> {
        let inputs = smallvec![input.clone()];
        Op::new(Elementwise { name, inputs, any: true, numbers: [0.0; 2] })
    }
}

impl Lower for Elementwise {
    fn name(&self) -> &'static str {
        self.name
    }

    fn first(&self) -> &Tensor {
        &self.inputs[0]
    }

    fn outputs(&self) -> Result<[Output; 1]> {
        let mut shape = Sizes::new();
        for (input, name) in self.inputs.iter().zip(["the first operand", "the second operand"]) {
            let check = if self.any { rank } else { float };
            check(self.name, name, input)?;
            self.first().context().same(input.context(), name)?;
            shape = joined(&shape, input.shape()).ok_or_else(|| {
                Error::Shape(format!(
                    "{}: operands of shapes {:?} and {:?}, of which neither is broadcast to the \
                     other",
                    self.name,
                    self.first().shape(),
                    input.shape()
                ))
            })?;
        }
        let is_scale = self.name == "scale";
        let names = if is_scale { ["", "the factor"] } else { ["alpha", "limit"] };
        for (number, name) in self.numbers.into_iter().zip(names) {
            if !(number.is_finite() && (is_scale || number >= 0.0)) {
                let (own, from) = (self.name, if is_scale { "" } else { " from 0 on" });
                return Err(Error::Misuse(format!(
                    "{own}: {name} is {number}, wanted a finite number{from}"
                )));
            }
        }
        let own = self.inputs.iter().all(|input| input.dtype() == self.first().dtype());
        only(shape, if own { self.first().dtype() } else { DType::F32 })
    }

    fn takes(&self, dtype: DType, own: DType) -> bool {
        self.any || dtype == own || dtype.is_float() && own.is_float()
    }

    fn steps(&self, [out]: [&Tensor; 1]) -> Result<Steps> {
        let integers = !self.first().dtype().is_float() && !out.dtype().is_float();
        let [alpha, limit] = self.numbers;
        let value = if integers { Constant::U32(0) } else { Constant::F32(limit) };
        let steps = each(self.name, Function::new("apply", self.name), &self.inputs, out, value)?;
        let with_alpha = |mut step: Step| {
            step.call = step.call.constant("ALPHA", alpha);
            step
        };
        Ok(steps.into_iter().map(with_alpha).collect())
    }

    fn host(&self, [out]: [&Tensor; 1]) -> Option<Result<()>> {
        host::run(self, out)
    }

    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        let rank = self.inputs.iter().map(|input| input.shape().len()).max().unwrap_or_default();
        let inputs = self.inputs.iter().map(|input| part_of(input, rank, axis, &range));
        Ok(Some(Elementwise { inputs: inputs.collect::<Result<_>>()?, ..*self }))
    }
}

/// Indices that count from entry `first` on, and the step that makes them. Indices of earlier
/// entries lie beyond all entries then.
pub(super) fn counted_from(first: usize, indices: &Tensor) -> Result<(Tensor, Steps)> {
    if first == 0 {
        return Ok((indices.clone(), Steps::new()));
    }
    let shifted = Tensor::zeros(indices.context(), DType::U32, indices.shape())?;
    let minus = Function::new("apply", "minus");
    let first = Constant::U32(first as u32);
    let steps = each("indices", minus, std::slice::from_ref(indices), &shifted, first)?;
    Ok((shifted, steps))
}

/// The shape to which two shapes are broadcast, after numpy's rules.
fn joined(a: &[usize], b: &[usize]) -> Option<Sizes> {
    let (long, short) = if a.len() < b.len() { (b, a) } else { (a, b) };
    let mut shape: Sizes = long.into();
    for (size, &other) in shape.iter_mut().rev().zip(short.iter().rev()) {
        match (*size, other) {
            (1, _) => *size = other,
            (own, other) if other == 1 || own == other => {}
            _ => return None,
        }
    }
    Some(shape)
}

/// The steps that apply a function to the elements of up to two tensors, broadcast to the output,
/// and to a number.
pub(super) fn each(
    operation: &str,
    function: Function,
    inputs: &[Tensor],
    out: &Tensor,
    value: Constant,
) -> Result<Steps> {
    let shape = out.shape();
    let mut strides = [Sizes::new(), Sizes::new(), out.strides().into()];
    for (strides, input) in strides.iter_mut().zip(inputs) {
        *strides = broadcast(input, shape).ok_or_else(|| {
            Error::Shape(format!(
                "{operation}: an operand of shape {:?} for an output of shape {shape:?}",
                input.shape()
            ))
        })?;
    }
    for strides in &mut strides[inputs.len()..2] {
        *strides = smallvec![0; shape.len()];
    }
    let mut axes = Axes { shape: shape.into(), strides }.collapsed();
    if axes.shape.is_empty() {
        axes.push(1, [1, 1, 1]);
    }
    let last = axes.shape.len() - 1;
    let rows = Rows::new(operation, axes, last)?;
    let views: SmallVec<[Tensor; 2]> =
        inputs.iter().enumerate().map(|(at, input)| rows.view(input, at)).collect();
    let views: SmallVec<[Option<&Tensor>; 2]> = views.iter().map(Some).collect();
    let mut step = ELEMENTWISE.step(operation, function, &views, &[&rows.view(out, 2)])?;
    let caps = &out.context().0.caps;
    step.call = in_blocks(operation, step.call, rows.count, rows.length(), caps)?
        .constant("INPUTS", inputs.len() as u32)
        .value("value", value);
    Ok(smallvec![step])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_joined() {
        assert_eq!(joined(&[3, 1], &[2, 1, 4]).unwrap()[..], [2, 3, 4]);
        assert_eq!(joined(&[], &[2, 0]).unwrap()[..], [2, 0]);
        assert_eq!(joined(&[1], &[0]).unwrap()[..], [0]);
        assert_eq!(joined(&[3], &[2]), None);
    }
}
