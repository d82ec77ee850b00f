//! Functions of elements on the host: those of choices.wgsl and functions.wgsl.

use super::Elementwise;
use crate::kernel::Constant;
use crate::ops::host::elements;
use crate::ops::host::math::exp;
use crate::ops::layout::{Sizes, broadcast};
use crate::tensor::Tensor;
use smallvec::smallvec;
use tilewise_core::{DType, Error, Result};

/// Computes the elements of an output from those of up to two inputs, and from two numbers.
type Apply = fn([&[f32]; 2], [f32; 2], &mut [f32]);

/// Applies the function to the elements of the output; none if it has no loop.
pub(super) fn run(of: &Elementwise, out: &Tensor) -> Option<Result<()>> {
    let Elementwise { name, inputs, numbers, .. } = of;
    let apply = match *name {
        "copy" => copy(inputs[0].dtype(), out.dtype()),
        name => function(name)?,
    };
    let [a, b] = [inputs.first(), inputs.get(1)];
    let strides = |input: Option<&Tensor>| match input {
        Some(input) => broadcast(input, out.shape()),
        None => Some(smallvec![0; out.shape().len()]),
    };
    let strides: Option<[Sizes; 2]> = strides(a).zip(strides(b)).map(Into::into);
    let misfit = || Error::Shape(format!("{name}: an operand for {:?}", out.shape()));
    Some(
        strides.ok_or_else(misfit).and_then(|strides| {
            elements([a, b], strides, out, |inputs, y| apply(inputs, *numbers, y))
        }),
    )
}

/// Writes a number to all elements, whose bits it has.
pub(in crate::ops) fn fill(out: &Tensor, value: Constant) -> Result<()> {
    let word = match value {
        Constant::F32(value) => value.to_bits(),
        Constant::U32(value) => value,
        Constant::I32(value) => value as u32,
        Constant::Bool(value) => value.into(),
    };
    let none: Sizes = smallvec![0; out.shape().len()];
    elements([None, None], [none.clone(), none], out, |_, y| {
        bytemuck::cast_slice_mut::<f32, u32>(y).fill(word);
    })
}

/// Adds a number to all elements of u32.
pub(in crate::ops) fn increase(of: &Tensor, by: u32) -> Result<()> {
    let strides = [of.strides().into(), smallvec![0; of.shape().len()]];
    elements([Some(of), None], strides, of, |[x, _], y| {
        let sums = y.iter_mut().zip(x);
        sums.for_each(|(y, x)| *y = f32::from_bits(x.to_bits().wrapping_add(by)));
    })
}

/// A function of each element of one tensor, or of each pair of two.
macro_rules! each {
    (|$x:pat_param| $y:expr) => {
        |[x, _], _, y| y.iter_mut().zip(x).for_each(|(y, &$x)| *y = $y)
    };
    (|$x:pat_param, $z:pat_param| $y:expr) => {
        |[x, z], _, y| y.iter_mut().zip(x).zip(z).for_each(|((y, &$x), &$z)| *y = $y)
    };
}

fn function(name: &str) -> Option<Apply> {
    Some(match name {
        "scale" => |[x, _], [_, factor], y| {
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x * factor);
        },
        "neg" => each!(|x| -x),
        "abs" => each!(|x| x.abs()),
        "exp" => each!(|x| x.exp()),
        "log" => each!(|x| x.ln()),
        "sqrt" => each!(|x| x.sqrt()),
        "rsqrt" => each!(|x| 1.0 / x.sqrt()),
        "tanh" => each!(|x| x.tanh()),
        "sigmoid" => each!(|x| sigmoid(x)),
        "relu" => each!(|x| if x < 0.0 { 0.0 } else { x }),
        "gelu" => each!(|x| gelu(x)),
        "gelu_erf" => each!(|x| gelu_erf(x)),
        "silu" => each!(|x| silu(x)),
        "sin" => each!(|x| x.sin()),
        "cos" => each!(|x| x.cos()),
        "square" => each!(|x| x * x),
        "recip" => each!(|x| 1.0 / x),
        "add" => each!(|x, z| x + z),
        "sub" => each!(|x, z| x - z),
        "mul" => each!(|x, z| x * z),
        "div" => each!(|x, z| x / z),
        "max" => each!(|x, z| if x > z || x.is_nan() { x } else { z }),
        "min" => each!(|x, z| if x < z || x.is_nan() { x } else { z }),
        "pow" => each!(|x, z| x.powf(z)),
        "silu_mul" => each!(|x, z| silu(x) * z),
        "gelu_mul" => each!(|x, z| gelu(x) * z),
        "swiglu_oai" => |[x, z], [alpha, limit], y| {
            let pairs = y.iter_mut().zip(x).zip(z);
            pairs.for_each(|((y, &x), &z)| *y = swiglu_oai(x, z, alpha, limit));
        },
        "silu_backward" => {
            each!(|x, z| x * (sigmoid(z) * (1.0 + z.clamp(-88.0, 88.0) * sigmoid(-z))))
        }
        _ => return None,
    })
}

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    let f = 1.0 / (1.0 + exp(-x.clamp(-87.0, 87.0)));
    if x < -87.0 { 0.0 } else { f }
}

#[inline(always)]
fn silu(x: f32) -> f32 {
    let f = x / (1.0 + exp(-x.clamp(-87.0, 87.0)));
    if x < -87.0 { 0.0 } else { f }
}

/// The gate of GPT-OSS.
#[inline(always)]
fn swiglu_oai(x: f32, z: f32, alpha: f32, limit: f32) -> f32 {
    let gate = if x > limit { limit } else { x };
    let up = if z > limit { limit } else { z };
    let up = if up < -limit { -limit } else { up };
    let f = if alpha * gate < -87.0 { 0.0 } else { gate * sigmoid(alpha * gate) };
    f * (up + 1.0)
}

/// (1 + tanh(z))/2 is the sigmoid of 2·z.
#[inline(always)]
fn gelu(x: f32) -> f32 {
    const ROOT: f32 = 0.797_884_6;
    let inner = ROOT * (x + 0.044715 * x * x * x);
    let f = x / (1.0 + exp(-2.0 * inner.clamp(-15.0, 15.0)));
    let f = if x < -10.0 { 0.0 } else { f };
    if x > 10.0 { x } else { f }
}

#[inline(always)]
fn gelu_erf(x: f32) -> f32 {
    let root = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let z = if root > 9.0 { 9.0 } else { root };
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let inner = t * (-0.284_496_74 + t * (1.421_413_8 + t * (-1.453_152 + t * 1.061_405_4)));
    let tail = 0.5 * t * (0.254_829_6 + inner) * exp(-z * z);
    let f = if x < 0.0 { x * tail } else { x - x * tail };
    let f = if x < -12.0 { 0.0 } else { f };
    if x > 6.0 { x } else { f }
}

/// A copy between types. Numbers beyond an integer's range become the last f32 in it.
fn copy(from: DType, to: DType) -> Apply {
    match (from, to) {
        (DType::F32 | DType::F16 | DType::BF16, DType::I32) => {
            each!(|x| f32::from_bits(x.clamp(-2_147_483_648.0, 2_147_483_520.0) as i32 as u32))
        }
        (DType::F32 | DType::F16 | DType::BF16, DType::U32) => {
            each!(|x| f32::from_bits(x.clamp(0.0, 4_294_967_040.0) as u32))
        }
        (DType::I32, DType::F32 | DType::F16 | DType::BF16) => {
            each!(|x| x.to_bits() as i32 as f32)
        }
        (DType::U32, DType::F32 | DType::F16 | DType::BF16) => each!(|x| x.to_bits() as f32),
        _ => |[x, _], _, y| y.copy_from_slice(x),
    }
}
