//! Functions of the elements of one tensor.

use super::{Elementwise, functions};
use crate::ops::op::Op;
use crate::tensor::Tensor;

/// Gives each function its entry in an enum, and a function of the module.
macro_rules! public {
    ($($(#[$doc:meta])* $function:ident $name:ident $title:literal;)*) => {
        functions! {
            /// The functions of one tensor, for tests that take all.
            Unary;
            $($(#[$doc])* $name $title;)*
        }

        $($(#[$doc])* pub fn $function(x: &Tensor) -> Op<Elementwise> {
            unary(x, Unary::$name)
        })*
    };
}

// One line for each. choices.wgsl has the functions in WGSL, and the crate `tilewise-oracle` in
// f64, with their errors.
public! {
    /// −x.
    neg Neg "neg";
    /// |x|.
    abs Abs "abs";
    /// eˣ.
    exp Exp "exp";
    /// The natural logarithm, of positive numbers.
    log Log "log";
    /// The square root, of 0 and positive numbers.
    sqrt Sqrt "sqrt";
    /// 1/√x, of positive numbers.
    rsqrt Rsqrt "rsqrt";
    /// The hyperbolic tangent.
    tanh Tanh "tanh";
    /// 1/(1 + e⁻ˣ).
    sigmoid Sigmoid "sigmoid";
    /// max(x, 0).
    relu Relu "relu";
    /// x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))), the tanh form.
    gelu Gelu "gelu";
    /// x·Φ(x), PyTorch's default GELU.
    gelu_erf GeluErf "gelu_erf";
    /// x/(1 + e⁻ˣ).
    silu Silu "silu";
    /// The sine, of |x| up to 2¹⁶.
    sin Sin "sin";
    /// The cosine, of |x| up to 2¹⁶.
    cos Cos "cos";
    /// x².
    square Square "square";
    /// 1/x.
    recip Recip "recip";
}

/// x times a number of the host's, such as the root of a width.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, -2.0], &[2])?;
/// assert_eq!(ops::scale(&x, 0.5).run()?.read_blocking::<f32>()?, [0.5, -1.0]);
/// # Ok(())
/// # }
/// ```
pub fn scale(x: &Tensor, factor: f32) -> Op<Elementwise> {
    Elementwise::op("scale", &[x], [0.0, factor])
}

/// Applies one of the functions.
#[doc(hidden)]
pub fn unary(x: &Tensor, function: Unary) -> Op<Elementwise> {
    Elementwise::op(function.name(), &[x], [0.0; 2])
}
