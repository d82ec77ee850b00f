//! Functions of the elements of two tensors.

use super::elementwise::Elementwise;
use super::op::Op;
use super::unary::Unary;
use crate::tensor::Tensor;

/// Relative distance between neighbours of f32.
const ULP: f64 = 1.0 / (1u64 << 23) as f64;

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident $title:literal $reference:expr, $error:expr;)*) => {
        /// A function of two numbers, computed in f32.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Binary {
            $($(#[$doc])* $name,)*
        }

        impl Binary {
            /// All functions.
            pub const ALL: &[Binary] = &[$(Binary::$name),*];

            /// The function's name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Binary::$name => $title,)*
                }
            }

            /// The function itself.
            pub fn reference(self, a: f64, b: f64) -> f64 {
                let function: fn(f64, f64) -> f64 = match self {
                    $(Binary::$name => $reference,)*
                };
                function(a, b)
            }

            /// How far the f32 result may be off, before its rounding to the output's type. Results
            /// below 2⁻¹²⁶ may also be 0. Infinite if two numbers have no result.
            pub fn error(self, a: f64, b: f64) -> f64 {
                let function: fn(f64, f64, f64) -> f64 = match self {
                    $(Binary::$name => $error,)*
                };
                let y = self.reference(a, b);
                match y.is_nan() && !a.is_nan() && !b.is_nan() && self != Binary::Pow {
                    true => f64::INFINITY,
                    false if y.is_infinite() => 0.0,
                    false => function(a, b, y),
                }
            }
        }
    };
}

// One line for each: name, the function in f64, and the error at a and b, where the function is y,
// by the accuracies of the WGSL specification. choices.wgsl has the functions in WGSL.
binary! {
    /// a + b.
    Add "add" |a, b| a + b, |_, _, y| ULP * y.abs();
    /// a − b.
    Sub "sub" |a, b| a - b, |_, _, y| ULP * y.abs();
    /// a·b.
    Mul "mul" |a, b| a * b, |_, _, y| ULP * y.abs();
    /// a/b.
    Div "div" |a, b| a / b, |_, _, y| 2.5 * ULP * y.abs();
    /// The larger one; NaN if one is.
    Max "max" |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }, |_, _, _| 0.0;
    /// The smaller one; NaN if one is.
    Min "min" |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }, |_, _, _| 0.0;
    /// a to the power of b; NaN for a below 0 and b that is not whole.
    Pow "pow" f64::powf, |a, b, y| {
        // The magnitude is 2^t with t = b·log₂|a|.
        let t = if a == 0.0 { 0.0 } else { (b * a.abs().log2()).abs().min(1e4) };
        let logarithm = (3.0 * t).max(4.0 * b.abs().min(1e9));
        ((3.0 + 3.0 * t) + logarithm) * ULP * y.abs()
    };
    /// a/(1 + e⁻ᵃ)·b: the gate of SwiGLU.
    SiluMul "silu_mul" |a, b| Unary::Silu.reference(a) * b, |a, b, y| {
        Unary::Silu.error(a) * b.abs() + ULP * y.abs()
    };
    /// a times the slope of silu at b: PyTorch's `silu_backward`. For b below −87 the slope, which
    /// is less than 2e-36, is taken as 0.
    SiluBackward "silu_backward" |a, b| a * silu_slope(b), |a, b, y| {
        silu_slope_error(b) * a.abs() + ULP * y.abs()
    };
}

/// The slope of silu, f·(1 + x·(1 − f)) with f = 1/(1 + e⁻ˣ); 0 for x below −87.
fn silu_slope(x: f64) -> f64 {
    if x < -87.0 {
        return 0.0;
    }
    let x = x.clamp(-700.0, 700.0);
    let [f, rest] = [x, -x].map(|x| Unary::Sigmoid.reference(x));
    f * (1.0 + x * rest)
}

/// The error of [`silu_slope`]: of f, of x·(1 − f), and of the sum, whose terms may cancel.
fn silu_slope_error(x: f64) -> f64 {
    let x = x.clamp(-700.0, 700.0);
    let [f, rest] = [x, -x].map(|x| Unary::Sigmoid.reference(x));
    let [f_error, rest_error] = [x, -x].map(|x| Unary::Sigmoid.error(x));
    let product = x.abs() * (rest_error + ULP * rest);
    let sum = 1.0 + x * rest;
    f_error * sum.abs() + f * (product + 2.0 * ULP * sum.abs())
}

/// Applies a function to the elements of two tensors, which are broadcast as numpy does: axes are
/// aligned from the last one on, and a size of 1 serves any other. The output has the type of both,
/// or f32 if they differ. [`Binary::error`] has the errors.
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
