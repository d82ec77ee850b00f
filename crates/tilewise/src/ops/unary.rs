//! Functions of the elements of one tensor.

use super::elementwise::{Elementwise, functions};
use super::op::Op;
use crate::tensor::Tensor;

// One line for each. choices.wgsl has the functions in WGSL, and the crate `tilewise-oracle` in
// f64, with their errors.
functions! {
    /// A function of one number, computed in f32.
    Unary;
    /// −x.
    Neg "neg";
    /// |x|.
    Abs "abs";
    /// eˣ.
    Exp "exp";
    /// The natural logarithm, of positive numbers.
    Log "log";
    /// The square root, of 0 and positive numbers.
    Sqrt "sqrt";
    /// 1/√x, of positive numbers.
    Rsqrt "rsqrt";
    /// The hyperbolic tangent.
    Tanh "tanh";
    /// 1/(1 + e⁻ˣ).
    Sigmoid "sigmoid";
    /// max(x, 0).
    Relu "relu";
    /// x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))), the tanh form.
    Gelu "gelu";
    /// x·Φ(x), PyTorch's default GELU.
    GeluErf "gelu_erf";
    /// x/(1 + e⁻ˣ).
    Silu "silu";
    /// The sine, of |x| up to 2¹⁶.
    Sin "sin";
    /// The cosine, of |x| up to 2¹⁶.
    Cos "cos";
    /// x².
    Square "square";
    /// 1/x.
    Recip "recip";
}

/// Applies a function to each element. Some functions have a shorter form in this module, such as
/// [`exp`]. The crate `tilewise-oracle` computes the
/// largest errors, which follow from WGSL's
/// [accuracies](https://www.w3.org/TR/WGSL/#floating-point-accuracy).
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, -2.0], &[2])?;
/// assert_eq!(ops::unary(&x, ops::Unary::Neg).run()?.read_blocking::<f32>()?, [-1.0, 2.0]);
/// ops::unary(&x, ops::Unary::Square).run_into(&x)?; // in place
/// assert_eq!(x.read_blocking::<f32>()?, [1.0, 4.0]);
/// # Ok(())
/// # }
/// ```
pub fn unary(x: &Tensor, function: Unary) -> Op<Elementwise> {
    Elementwise::op(function.name(), &[x])
}

macro_rules! short {
    ($($name:ident $function:ident;)*) => {
        $(
            #[doc = concat!("[`Unary::", stringify!($function), "`] of each element.")]
            pub fn $name(x: &Tensor) -> Op<Elementwise> {
                unary(x, Unary::$function)
            }
        )*
    };
}

short! {
    exp Exp;
    gelu Gelu;
    gelu_erf GeluErf;
    relu Relu;
    sigmoid Sigmoid;
    silu Silu;
}
