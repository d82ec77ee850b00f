//! The functions of [`tilewise::ops`] in f64, and how far one that is computed in f32 may be off,
//! before its rounding to the output's type. The errors follow from the accuracies of the WGSL
//! specification. Results below 2⁻¹²⁶ may also be 0.

use crate::{erf_gelu, silu, tanh_gelu};
use tilewise::ops::{Binary, Unary};

/// Relative distance between neighbours of f32.
const ULP: f64 = 1.0 / (1u64 << 23) as f64;

/// A function of x, and its error at x, where the function is y.
type One = (fn(f64) -> f64, fn(f64, f64) -> f64);

/// A function of a and b, and its error at a and b, where the function is y.
type Two = (fn(f64, f64) -> f64, fn(f64, f64, f64) -> f64);

/// The function at `x`, and its error: infinite if the function is not defined there.
///
/// # Panics
/// When the function is not in the table below.
pub fn unary(function: Unary, x: f64) -> (f64, f64) {
    let (value, error): One = match function {
        Unary::Neg => (|x| -x, |_, _| 0.0),
        Unary::Abs => (f64::abs, |_, _| 0.0),
        Unary::Exp => (f64::exp, |x, y| (3.0 + 2.0 * x.abs().min(1e3)) * ULP * y),
        Unary::Log => (f64::ln, |x, y| within(x > 0.0, (3.0 * ULP * y.abs()).max(4.0 * ULP))),
        Unary::Sqrt => (f64::sqrt, |x, y| within(x >= 0.0, 5.0 * ULP * y)),
        Unary::Rsqrt => (|x| 1.0 / x.sqrt(), |x, y| within(x > 0.0, 2.0 * ULP * y)),
        Unary::Tanh => (f64::tanh, |_, _| 1e-5),
        Unary::Sigmoid => (|x| 1.0 / (1.0 + (-x).exp()), logistic_error),
        Unary::Relu => (|x| if x < 0.0 { 0.0 } else { x }, |_, _| 0.0),
        Unary::Gelu => (tanh_gelu, |x, y| x.abs().min(20.0) / 2.0 * 1.05e-5 + 3.0 * ULP * y.abs()),
        Unary::GeluErf => (erf_gelu, |x, y| x.abs().min(20.0) * 1.1e-6 + 3.0 * ULP * y.abs()),
        Unary::Silu => (silu, logistic_error),
        Unary::Sin => (f64::sin, |x, _| periodic(x)),
        Unary::Cos => (f64::cos, |x, _| periodic(x)),
        Unary::Square => (|x| x * x, |_, y| ULP * y),
        Unary::Recip => (|x| 1.0 / x, |_, y| 2.5 * ULP * y.abs()),
        _ => panic!("the oracle does not know the function {}", function.name()),
    };
    let y = value(x);
    let error = if y.is_infinite() { 0.0 } else { error(x, y) };
    (y, within(x.is_nan() || !y.is_nan(), error))
}

/// The function at `a` and `b`, and its error: infinite if two numbers have no result.
///
/// # Panics
/// When the function is not in the table below.
pub fn binary(function: Binary, a: f64, b: f64) -> (f64, f64) {
    let (value, error): Two = match function {
        Binary::Add => (|a, b| a + b, |_, _, y| ULP * y.abs()),
        Binary::Sub => (|a, b| a - b, |_, _, y| ULP * y.abs()),
        Binary::Mul => (|a, b| a * b, |_, _, y| ULP * y.abs()),
        Binary::Div => (|a, b| a / b, |_, _, y| 2.5 * ULP * y.abs()),
        Binary::Max => (|a, b| of_numbers(a, b, f64::max), |_, _, _| 0.0),
        Binary::Min => (|a, b| of_numbers(a, b, f64::min), |_, _, _| 0.0),
        Binary::Pow => (f64::powf, |a, b, y| {
            // The magnitude is 2^t with t = b·log₂|a|.
            let t = if a == 0.0 { 0.0 } else { (b * a.abs().log2()).abs().min(1e4) };
            let logarithm = (3.0 * t).max(4.0 * b.abs().min(1e9));
            ((3.0 + 3.0 * t) + logarithm) * ULP * y.abs()
        }),
        Binary::SiluMul => {
            (|a, b| silu(a) * b, |a, b, y| unary(Unary::Silu, a).1 * b.abs() + ULP * y.abs())
        }
        Binary::GeluMul => {
            (|a, b| tanh_gelu(a) * b, |a, b, y| unary(Unary::Gelu, a).1 * b.abs() + ULP * y.abs())
        }
        Binary::SiluBackward => {
            (|a, b| a * silu_slope(b).0, |a, b, y| silu_slope(b).1 * a.abs() + ULP * y.abs())
        }
        _ => panic!("the oracle does not know the function {}", function.name()),
    };
    let y = value(a, b);
    match y.is_nan() && !a.is_nan() && !b.is_nan() && function != Binary::Pow {
        true => (y, f64::INFINITY),
        false if y.is_infinite() => (y, 0.0),
        false => (y, error(a, b, y)),
    }
}

/// [`swiglu_oai`](tilewise::ops::swiglu_oai) and its error, for numbers alpha and limit of f32.
pub fn swiglu_oai(gate: f64, up: f64, [alpha, limit]: [f64; 2]) -> (f64, f64) {
    let clamped = |x: f64, least: f64| if x.is_nan() { x } else { x.clamp(least, limit) };
    let (gate, up) = (clamped(gate, f64::NEG_INFINITY), clamped(up, -limit));
    let t = alpha * gate;
    let y = (up + 1.0) * if t < -700.0 { 0.0 } else { gate / (1.0 + (-t).exp()) };
    // The rounding of alpha·gate changes the exponential; a product and a sum follow.
    let rounding = t.abs().min(700.0) * ULP / (1.0 + t.clamp(-700.0, 700.0).exp());
    (y, logistic_error(t, y) + (rounding + 3.0 * ULP) * y.abs())
}

fn within(defined: bool, error: f64) -> f64 {
    if defined { error } else { f64::INFINITY }
}

/// NaN if one of the two is NaN.
fn of_numbers(a: f64, b: f64, pick: fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { pick(a, b) }
}

/// The error of a logistic function y of x, or of x times one: by its exponential, which vanishes
/// for large x, and by a sum and a division. f32 has no e⁻ˣ for x below −87.
fn logistic_error(x: f64, y: f64) -> f64 {
    let within = x.clamp(-700.0, 700.0);
    let exponential = (3.0 + 2.0 * within.abs()) * ULP / (1.0 + within.exp());
    (exponential + 4.0 * ULP) * y.abs() + if x < -87.0 { y.abs() } else { 0.0 }
}

/// The error of sine and cosine: 2⁻¹¹ within ±π, and the error of the reduction to ±π.
fn periodic(x: f64) -> f64 {
    within(x.abs() <= 65536.0, 1.0 / 2048.0 + x.abs() * 2.0 * ULP)
}

/// The slope of silu, f·(1 + x·(1 − f)) with f = 1/(1 + e⁻ˣ), which is 0 for x below −87; and its
/// error: of f, of x·(1 − f), and of the sum, whose terms may cancel.
fn silu_slope(x: f64) -> (f64, f64) {
    let vanishes = x < -87.0;
    let x = x.clamp(-700.0, 700.0);
    let [(f, f_error), (rest, rest_error)] = [x, -x].map(|x| unary(Unary::Sigmoid, x));
    let product = x.abs() * (rest_error + ULP * rest);
    let sum = 1.0 + x * rest;
    let error = f_error * sum.abs() + f * (product + 2.0 * ULP * sum.abs());
    (if vanishes { 0.0 } else { f * sum }, error)
}
