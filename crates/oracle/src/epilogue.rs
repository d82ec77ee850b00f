//! From the sum over K to the number that is stored, with the error of every step.

use super::product::Dot;
use tilewise_core::convert;
use tilewise_core::problem::{Activation, DType, Problem};

/// Relative error of one f32 rounding.
const U: f64 = DType::F32.unit_roundoff();
/// A subnormal result may be flushed to zero, which costs less than this.
const SMALLEST_NORMAL: f64 = f32::MIN_POSITIVE as f64;

/// The operands of the epilogue beside the product: each a value and the error admitted in it.
pub(super) struct Terms {
    /// Old element of C; none when beta is 0.
    pub(super) old: Option<(f64, f64)>,
    /// Element of the bias.
    pub(super) bias: Option<(f64, f64)>,
    /// Element of the residual.
    pub(super) residual: Option<(f64, f64)>,
}

/// x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³))): see [`Activation::Gelu`].
pub fn tanh_gelu(x: f64) -> f64 {
    // x·σ(2t) is the same function, and keeps its digits if 1 + tanh(t) cancels.
    let t = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
    x * logistic(2.0 * t)
}

/// x / (1 + e^(−x)): see [`Activation::Silu`].
pub fn silu(x: f64) -> f64 {
    x * logistic(x)
}

/// x·Φ(x): see [`Activation::GeluErf`].
pub fn erf_gelu(x: f64) -> f64 {
    // Φ by the series of erf near 0, and by a continued fraction of its complement farther out.
    let z = x.abs() * std::f64::consts::FRAC_1_SQRT_2;
    let tail = if z < 3.0 {
        let mut term = z;
        let mut sum = z;
        for n in 1..100 {
            term *= -z * z / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        0.5 - sum / std::f64::consts::PI.sqrt()
    } else {
        let fraction = (1..60).rev().fold(z, |deeper, n| z + f64::from(n) / 2.0 / deeper);
        (-z * z).exp() / (2.0 * std::f64::consts::PI.sqrt() * fraction)
    };
    match x.is_nan() {
        true => x,
        false if x < 0.0 => x.max(-1e9) * tail,
        false => x - x.min(1e9) * tail,
    }
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The result before its rounding to C's type, and the bound of the stored number.
pub(super) fn apply(problem: &Problem, dot: &Dot, terms: &Terms) -> (f64, f64) {
    let (epilogue, sums, output) = (
        &problem.epilogue,
        problem.accumulation(),
        problem.c.format.element().unwrap_or(DType::F32),
    );
    let (alpha, beta) = (f64::from(epilogue.alpha), f64::from(epilogue.beta));
    let (old, old_error) = terms.old.unwrap_or_default();
    let (bias, bias_error) = terms.bias.unwrap_or_default();

    // x = alpha·Σ + beta·C + bias. No term meets more roundings than there are steps, in any order,
    // fused or not.
    let old = if terms.old.is_some() { beta * old } else { 0.0 };
    let x = alpha * dot.sum + old + bias;
    let steps =
        u8::from(alpha != 1.0) + 2 * u8::from(terms.old.is_some()) + u8::from(terms.bias.is_some());
    let sum_error = dot.error(problem);
    let magnitude = alpha.abs() * (dot.sum.abs() + sum_error) + old.abs() + bias.abs();
    let mut error = alpha.abs() * sum_error + beta.abs() * old_error + bias_error;
    error += f64::from(steps) * (U * magnitude + SMALLEST_NORMAL);

    // The function is applied to the sum or to a gate.
    let argument = match terms.residual {
        Some((gate, _)) if epilogue.gated => gate,
        _ => x,
    };
    let (mut value, lipschitz, activation_error) = activate(epilogue.activation, argument);
    let mut undecided = false;
    match terms.residual {
        Some((_, gate_error)) if epilogue.gated => {
            let (gate, off) = (value, lipschitz * gate_error + activation_error);
            // Zero times infinity is NaN, and a factor within its error of zero may be zero.
            undecided =
                gate.is_infinite() && x.abs() <= error || x.is_infinite() && gate.abs() <= off;
            let product = (x.abs() + error) * (gate.abs() + off);
            error = x.abs() * off + gate.abs() * error + error * off;
            error += U * product + SMALLEST_NORMAL;
            value = x * gate;
        }
        residual => {
            error = lipschitz * error + activation_error;
            if let Some((residual, off)) = residual {
                error += off + U * (value.abs() + error + residual.abs()) + SMALLEST_NORMAL;
                value += residual;
            }
        }
    }

    let reach = value.abs() + error;
    let smallest_normal = convert::min_normal(output);
    if value.abs() - error < smallest_normal {
        error += reach.min(smallest_normal);
    }
    if output != DType::F32 {
        error += half_ulp(output, reach);
    }

    let overflows = |sum: f64, total: f64| {
        sum >= convert::largest(sums) || total >= convert::largest(DType::F32)
    };
    let overflow = if dot.magnitude.is_finite() {
        overflows(dot.magnitude + sum_error, magnitude)
    } else {
        // The finite part of an infinite sum may overflow to the other side: then the sum is NaN.
        let finite = Dot { magnitude: dot.finite, input_error: 0.0, ..*dot };
        let reach = finite.magnitude + finite.error(problem);
        let others: f64 =
            [old, bias].into_iter().filter(|term| term.is_finite()).map(f64::abs).sum();
        reach.is_infinite()
            || dot.sum.is_infinite() && overflows(reach, alpha.abs() * reach + others)
    };
    // max(NaN, 0) may be 0, and the formulas of the others meet ∞/∞ or 0·∞.
    let undefined = match epilogue.activation {
        Activation::None => false,
        Activation::Relu => argument.is_nan(),
        _ => argument.is_infinite(),
    };
    if overflow || undefined || undecided {
        (value, f64::INFINITY)
    } else if value.is_finite() {
        (value, if error.is_nan() { f64::INFINITY } else { error })
    } else {
        (value, 0.0)
    }
}

/// Activation of x, its Lipschitz constant, and the error of evaluating it in f32 with the
/// accuracies of the WGSL specification (section "Accuracy of Concrete Floating Point
/// Expressions"): division 2.5 ulp, exp(x) 3 + 2|x| ulp, tanh 1e-5 absolute.
fn activate(activation: Activation, x: f64) -> (f64, f64, f64) {
    const ULP: f64 = 2.0 * U;
    match activation {
        Activation::None => (x, 1.0, 0.0),
        Activation::Relu => (if x < 0.0 { 0.0 } else { x }, 1.0, 0.0),
        Activation::Gelu => {
            let y = tanh_gelu(x);
            // By tanh: t carries seven roundings, which tanh turns into 7u·|t|·sech²(t) < 4u; then
            // one sum and two products. The form x·σ(2t) errs less. The device's tanh may be (e^t −
            // e^−t)/(e^t + e^−t), which overflows: 1e-5 holds for |t| up to about 15, where a
            // kernel has to clamp t.
            (y, 1.13, x.abs() / 2.0 * (1e-5 + 4.0 * U) + 2.0 * ULP * y.abs() + SMALLEST_NORMAL)
        }
        Activation::GeluErf => {
            let y = erf_gelu(x);
            // Φ by a polynomial that is wrong by 1.5e-7, of ten roundings, a division and an
            // exponential, all of numbers up to 1.
            let inner = x.abs().min(20.0) * 1.1e-6;
            (y, 1.13, inner + 3.0 * ULP * y.abs() + SMALLEST_NORMAL)
        }
        Activation::Silu => {
            let (y, sigma) = (silu(x), logistic(x));
            // dσ = σ(1 − σ)·(relative error of the exponential); then a sum, a division and perhaps
            // a product.
            let exponential = x.abs() * sigma * (1.0 - sigma) * (3.0 + 2.0 * x.abs()) * ULP;
            // Beyond 87, e^(−x) nears the end of f32's range, where the quotient may be zero.
            let vanishing = if x < -87.0 { y.abs() } else { 0.0 };
            (y, 1.1, exponential + 4.0 * ULP * y.abs() + vanishing + SMALLEST_NORMAL)
        }
        other => panic!("the oracle does not know the activation {other:?}"),
    }
}

/// Half the distance between neighbours in `dtype` at `magnitude`: the error of rounding to
/// nearest.
pub(super) fn half_ulp(dtype: DType, magnitude: f64) -> f64 {
    const EXPONENT: u64 = 0x7ff << 52;
    let power_of_two =
        f64::from_bits(magnitude.max(convert::min_normal(dtype)).to_bits() & EXPONENT);
    power_of_two * dtype.unit_roundoff()
}
