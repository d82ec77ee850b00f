//! Functions of the elements of one tensor.

use super::elementwise::Elementwise;
use super::op::Op;
use crate::tensor::Tensor;
use tilewise_core::reference;

/// Relative distance between neighbours of f32.
const ULP: f64 = 1.0 / (1u64 << 23) as f64;

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $title:literal $reference:expr, $error:expr;)*) => {
        /// A function of one number, computed in f32.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Unary {
            $($(#[$doc])* $name,)*
        }

        impl Unary {
            /// All functions.
            pub const ALL: &[Unary] = &[$(Unary::$name),*];

            /// The function's name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Unary::$name => $title,)*
                }
            }

            /// The function itself.
            pub fn reference(self, x: f64) -> f64 {
                let function: fn(f64) -> f64 = match self {
                    $(Unary::$name => $reference,)*
                };
                function(x)
            }

            /// How far the f32 result may be off at x, before its rounding to the output's type.
            /// Results below 2⁻¹²⁶ may also be 0. Infinite if the function is not defined at x.
            pub fn error(self, x: f64) -> f64 {
                let function: fn(f64, f64) -> f64 = match self {
                    $(Unary::$name => $error,)*
                };
                let y = self.reference(x);
                let error = if y.is_infinite() { 0.0 } else { function(x, y) };
                within(x.is_nan() || !y.is_nan(), error)
            }
        }
    };
}

// One line for each: name, the function in f64, and the error at x, where the function is y, by the
// accuracies of the WGSL specification. choices.wgsl has the functions in WGSL.
unary! {
    /// −x.
    Neg "neg" |x| -x, |_, _| 0.0;
    /// |x|.
    Abs "abs" f64::abs, |_, _| 0.0;
    /// eˣ.
    Exp "exp" f64::exp, |x, y| (3.0 + 2.0 * x.abs().min(1e3)) * ULP * y;
    /// The natural logarithm, of positive numbers.
    Log "log" f64::ln, |x, y| within(x > 0.0, (3.0 * ULP * y.abs()).max(4.0 * ULP));
    /// The square root, of 0 and positive numbers.
    Sqrt "sqrt" f64::sqrt, |x, y| within(x >= 0.0, 5.0 * ULP * y);
    /// 1/√x, of positive numbers.
    Rsqrt "rsqrt" |x| 1.0 / x.sqrt(), |x, y| within(x > 0.0, 2.0 * ULP * y);
    /// The hyperbolic tangent.
    Tanh "tanh" f64::tanh, |_, _| 1e-5;
    /// 1/(1 + e⁻ˣ).
    Sigmoid "sigmoid" |x| 1.0 / (1.0 + (-x).exp()), |x, y| {
        (exponential(x) + 4.0 * ULP) * y + if x < -87.0 { y } else { 0.0 }
    };
    /// max(x, 0).
    Relu "relu" |x| if x < 0.0 { 0.0 } else { x }, |_, _| 0.0;
    /// x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))), the tanh form.
    Gelu "gelu" reference::tanh_gelu, |x, y| {
        x.abs().min(20.0) / 2.0 * 1.05e-5 + 3.0 * ULP * y.abs()
    };
    /// x·Φ(x), PyTorch's default GELU.
    GeluErf "gelu_erf" reference::erf_gelu, |x, y| {
        x.abs().min(20.0) * 1.1e-6 + 3.0 * ULP * y.abs()
    };
    /// x/(1 + e⁻ˣ).
    Silu "silu" reference::silu, |x, y| {
        (exponential(x) + 4.0 * ULP) * y.abs() + if x < -87.0 { y.abs() } else { 0.0 }
    };
    /// The sine, of |x| up to 2¹⁶.
    Sin "sin" f64::sin, |x, _| periodic(x);
    /// The cosine, of |x| up to 2¹⁶.
    Cos "cos" f64::cos, |x, _| periodic(x);
    /// x².
    Square "square" |x| x * x, |_, y| ULP * y;
    /// 1/x.
    Recip "recip" |x| 1.0 / x, |_, y| 2.5 * ULP * y.abs();
}

fn within(defined: bool, error: f64) -> f64 {
    if defined { error } else { f64::INFINITY }
}

/// The relative error of a logistic function that its exponential causes; it vanishes for large x.
pub(super) fn exponential(x: f64) -> f64 {
    let x = x.clamp(-700.0, 700.0);
    (3.0 + 2.0 * x.abs()) * ULP / (1.0 + x.exp())
}

/// The error of sine and cosine: 2⁻¹¹ within ±π, and the error of the reduction to ±π.
fn periodic(x: f64) -> f64 {
    within(x.abs() <= 65536.0, 1.0 / 2048.0 + x.abs() * 2.0 * ULP)
}

/// Applies a function to each element. Some functions have a shorter form in this module, such as
/// [`exp`]. [`Unary::error`] has the errors.
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
