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
    /// a times the slope of silu at b: PyTorch's `silu_backward`. For b below −87 the slope, which
    /// is less than 2e-36, is taken as 0.
    silu_backward SiluBackward "silu_backward";
}

/// Applies one of the functions.
#[doc(hidden)]
pub fn binary(a: &Tensor, b: &Tensor, function: Binary) -> Op<Elementwise> {
    Elementwise::op(function.name(), &[a, b])
}
