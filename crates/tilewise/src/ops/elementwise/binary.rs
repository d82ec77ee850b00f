//! Functions of the elements of two tensors.

use super::{Elementwise, functions};
use crate::ops::op::Op;
use crate::tensor::Tensor;

/// Gives each function its entry in an enum, and a function of the module.
macro_rules! public {
    ($($(#[$doc:meta])* $function:ident $name:ident $title:literal;)*) => {
        functions! {
            /// The functions of two tensors, for tests that take all.
            Binary;
            $($(#[$doc])* $name $title;)*
        }

        $($(#[$doc])* pub fn $function(a: &Tensor, b: &Tensor) -> Op<Elementwise> {
            binary(a, b, Binary::$name)
        })*
    };
}

// One line for each. choices.wgsl has the functions in WGSL, and the crate `tilewise-oracle` in
// f64, with their errors.
public! {
    /// a + b.
    add Add "add";
    /// a − b.
    sub Sub "sub";
    /// a·b.
    mul Mul "mul";
    /// a/b.
    div Div "div";
    /// The larger one; NaN if one is.
    maximum Max "max";
    /// The smaller one; NaN if one is.
    minimum Min "min";
    /// a to the power of b; NaN for a below 0 and b that is not whole.
    pow Pow "pow";
    /// a/(1 + e⁻ᵃ)·b: the gate of SwiGLU.
    silu_mul SiluMul "silu_mul";
    /// [`gelu`](crate::ops::gelu)(a)·b: the gate of GeGLU.
    gelu_mul GeluMul "gelu_mul";
    /// a times the slope of silu at b: PyTorch's `silu_backward`. For b below −87 the slope, which
    /// is less than 2e-36, is taken as 0.
    silu_backward SiluBackward "silu_backward";
}

/// (up + 1)·gate/(1 + e⁻ᵅᵍᵃᵗᵉ), the gate of GPT-OSS, where gate is clamped to at most `limit`, and
/// up to ±`limit`, before. There `alpha` is 1.702 and `limit` 7. NaN stays NaN.
///
/// The relative error is at most (10 + 3·|alpha·gate|)·2⁻²³, apart from the output's rounding; if
/// alpha·gate is below −87, the result is taken as 0.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let gate = Tensor::upload(&ctx, &[0.0f32, 90.0, 4.0], &[3])?;
/// let up = Tensor::upload(&ctx, &[5.0f32, 90.0, -1.0], &[3])?;
/// let y = ops::swiglu_oai(&gate, &up, 9.0, 7.0).run()?;
/// assert_eq!(y.read_blocking::<f32>()?, [0.0, 56.0, 0.0]); // 7·(7 + 1)
/// # Ok(())
/// # }
/// ```
pub fn swiglu_oai(gate: &Tensor, up: &Tensor, alpha: f32, limit: f32) -> Op<Elementwise> {
    Elementwise::op("swiglu_oai", &[gate, up], [alpha, limit])
}

/// Applies one of the functions.
#[doc(hidden)]
pub fn binary(a: &Tensor, b: &Tensor, function: Binary) -> Op<Elementwise> {
    Elementwise::op(function.name(), &[a, b], [0.0; 2])
}
