//! Functions of the elements of two tensors.

use super::elementwise::{Elementwise, functions};
use super::op::Op;
use crate::tensor::Tensor;

// One line for each. choices.wgsl has the functions in WGSL, and the crate `tilewise-oracle` in
// f64, with their errors.
functions! {
    /// A function of two numbers, computed in f32.
    Binary;
    /// a + b.
    Add "add";
    /// a − b.
    Sub "sub";
    /// a·b.
    Mul "mul";
    /// a/b.
    Div "div";
    /// The larger one; NaN if one is.
    Max "max";
    /// The smaller one; NaN if one is.
    Min "min";
    /// a to the power of b; NaN for a below 0 and b that is not whole.
    Pow "pow";
    /// a/(1 + e⁻ᵃ)·b: the gate of SwiGLU.
    SiluMul "silu_mul";
    /// a times the slope of silu at b: PyTorch's `silu_backward`. For b below −87 the slope, which
    /// is less than 2e-36, is taken as 0.
    SiluBackward "silu_backward";
}

/// Applies a function to the elements of two tensors, which are broadcast as numpy does: axes are
/// aligned from the last one on, and a size of 1 serves any other. The output has the type of both,
/// or f32 if they differ. The crate `tilewise-oracle` computes the
/// largest errors, which follow from WGSL's
/// [accuracies](https://www.w3.org/TR/WGSL/#floating-point-accuracy).
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// let row = Tensor::upload(&ctx, &[10.0f32, 20.0], &[2])?;
/// let y = ops::binary(&x, &row, ops::Binary::Add).run()?;
/// assert_eq!(y.read_blocking::<f32>()?, [11.0, 22.0, 13.0, 24.0]);
/// # Ok(())
/// # }
/// ```
pub fn binary(a: &Tensor, b: &Tensor, function: Binary) -> Op<Elementwise> {
    Elementwise::op(function.name(), &[a, b])
}

macro_rules! short {
    ($($name:ident $function:ident;)*) => {
        $(
            #[doc = concat!("[`Binary::", stringify!($function), "`] of two tensors.")]
            pub fn $name(a: &Tensor, b: &Tensor) -> Op<Elementwise> {
                binary(a, b, Binary::$function)
            }
        )*
    };
}

short! {
    add Add;
    div Div;
    mul Mul;
    silu_backward SiluBackward;
    silu_mul SiluMul;
    sub Sub;
}
