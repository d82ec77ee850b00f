//! Functions of floats.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::half::{self, Half};
use super::lane::{Lane, map1, map2, map3};
use super::{In, Out, undefined};
use crate::program::{Binary, Ternary, Ty, Unary};

/// The type in which arithmetic on a float type is done.
pub(super) trait Real:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + From<f32>
    + Into<f64>
{
    /// The value, rounded to this type.
    fn constant(value: f64) -> Self;
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    fn trunc(self) -> Self;
    fn is_nan(self) -> bool;
    fn is_infinite(self) -> bool;
}

/// A float lane.
pub(super) trait Float: Lane {
    type Real: Real;

    fn real(self) -> Self::Real;
    fn from_real(value: Self::Real) -> Self;
    /// Rounds once.
    fn from_f64(value: f64) -> Self;
    /// Rounds once.
    fn fma(a: Self, b: Self, c: Self) -> Self;
}

macro_rules! real {
    ($type:ident, $fma:expr) => {
        impl Real for $type {
            #[inline]
            fn constant(value: f64) -> Self {
                value as $type
            }

            #[inline]
            fn abs(self) -> Self {
                self.abs()
            }

            #[inline]
            fn sqrt(self) -> Self {
                self.sqrt()
            }

            #[inline]
            fn trunc(self) -> Self {
                self.trunc()
            }

            #[inline]
            fn is_nan(self) -> bool {
                self.is_nan()
            }

            #[inline]
            fn is_infinite(self) -> bool {
                self.is_infinite()
            }
        }

        impl Float for $type {
            type Real = Self;

            #[inline]
            fn real(self) -> Self {
                self
            }

            #[inline]
            fn from_real(value: Self) -> Self {
                value
            }

            #[inline]
            fn from_f64(value: f64) -> Self {
                value as $type
            }

            #[inline]
            fn fma(a: Self, b: Self, c: Self) -> Self {
                $fma(a, b, c)
            }
        }
    };
}
real!(f32, half::fma);
real!(f64, f64::mul_add);

impl Float for Half {
    type Real = f32;

    #[inline]
    fn real(self) -> f32 {
        self.0
    }

    #[inline]
    fn from_real(value: f32) -> Self {
        Half(value)
    }

    #[inline]
    fn from_f64(value: f64) -> Self {
        Half::from_f64(value)
    }

    #[inline]
    fn fma(a: Self, b: Self, c: Self) -> Self {
        Half::fma(a, b, c)
    }
}

pub(super) fn unary<F: Float>(f: Unary, ty: Ty, out: Out<'_>, a: In<'_>) {
    let (zero, one) = (F::Real::from(0.0), F::Real::from(1.0));
    match f {
        Unary::Negate => real1::<F>(out, a, |x| -x),
        Unary::Abs => real1::<F>(out, a, Real::abs),
        Unary::Sign => real1::<F>(out, a, |x| {
            if x > zero {
                one
            } else if x < zero {
                -one
            } else {
                zero
            }
        }),
        Unary::Saturate => real1::<F>(out, a, |x| minimum(maximum(x, zero), one)),
        Unary::Sqrt => real1::<F>(out, a, Real::sqrt),
        Unary::Radians => {
            real1::<F>(out, a, |x| x * F::Real::constant(std::f64::consts::PI / 180.0))
        }
        Unary::Degrees => {
            real1::<F>(out, a, |x| x * F::Real::constant(180.0 / std::f64::consts::PI))
        }
        Unary::Ceil => f64_1::<F>(out, a, f64::ceil),
        Unary::Floor => f64_1::<F>(out, a, f64::floor),
        Unary::Round => f64_1::<F>(out, a, f64::round_ties_even),
        Unary::Trunc => f64_1::<F>(out, a, f64::trunc),
        Unary::Fract => f64_1::<F>(out, a, |x| x - x.floor()),
        Unary::InverseSqrt => f64_1::<F>(out, a, |x| 1.0 / x.sqrt()),
        Unary::Exp => f64_1::<F>(out, a, f64::exp),
        Unary::Exp2 => f64_1::<F>(out, a, f64::exp2),
        Unary::Log => f64_1::<F>(out, a, f64::ln),
        Unary::Log2 => f64_1::<F>(out, a, f64::log2),
        Unary::Sin => f64_1::<F>(out, a, f64::sin),
        Unary::Cos => f64_1::<F>(out, a, f64::cos),
        Unary::Tan => f64_1::<F>(out, a, f64::tan),
        Unary::Sinh => f64_1::<F>(out, a, f64::sinh),
        Unary::Cosh => f64_1::<F>(out, a, f64::cosh),
        Unary::Tanh => f64_1::<F>(out, a, f64::tanh),
        Unary::Asin => f64_1::<F>(out, a, f64::asin),
        Unary::Acos => f64_1::<F>(out, a, f64::acos),
        Unary::Atan => f64_1::<F>(out, a, f64::atan),
        Unary::Asinh => f64_1::<F>(out, a, f64::asinh),
        Unary::Acosh => f64_1::<F>(out, a, f64::acosh),
        Unary::Atanh => f64_1::<F>(out, a, f64::atanh),
        Unary::QuantizeToF16 if ty == Ty::F32 => map1(out, a, |x: f32| half::widen(half::round(x))),
        Unary::IsNan => map1(out, a, |x: F| x.real().is_nan()),
        Unary::IsInf => map1(out, a, |x: F| x.real().is_infinite()),
        Unary::FrexpFraction => f64_1::<F>(out, a, |x| frexp(x).0),
        Unary::FrexpExponent => map1(out, a, |x: F| frexp(x.real().into()).1),
        Unary::QuantizeToF16
        | Unary::LogicalNot
        | Unary::BitwiseNot
        | Unary::CountOneBits
        | Unary::CountLeadingZeros
        | Unary::CountTrailingZeros
        | Unary::ReverseBits
        | Unary::FirstLeadingBit
        | Unary::FirstTrailingBit => undefined(f, ty),
    }
}

pub(super) fn binary<F: Float>(f: Binary, ty: Ty, out: Out<'_>, a: In<'_>, b: In<'_>) {
    match f {
        Binary::Add => real2::<F>(out, a, b, |x, y| x + y),
        Binary::Subtract => real2::<F>(out, a, b, |x, y| x - y),
        Binary::Multiply => real2::<F>(out, a, b, |x, y| x * y),
        Binary::Divide => real2::<F>(out, a, b, |x, y| x / y),
        Binary::Modulo => real2::<F>(out, a, b, |x, y| x - y * (x / y).trunc()),
        Binary::Equal => compare::<F>(out, a, b, |x, y| x == y),
        Binary::NotEqual => compare::<F>(out, a, b, |x, y| x != y),
        Binary::Less => compare::<F>(out, a, b, |x, y| x < y),
        Binary::LessEqual => compare::<F>(out, a, b, |x, y| x <= y),
        Binary::Greater => compare::<F>(out, a, b, |x, y| x > y),
        Binary::GreaterEqual => compare::<F>(out, a, b, |x, y| x >= y),
        Binary::Min => real2::<F>(out, a, b, minimum),
        Binary::Max => real2::<F>(out, a, b, maximum),
        Binary::Step => {
            real2::<F>(out, a, b, |edge, x| F::Real::from(if edge <= x { 1.0 } else { 0.0 }))
        }
        Binary::Pow => f64_2::<F>(out, a, b, power),
        Binary::Atan2 => f64_2::<F>(out, a, b, f64::atan2),
        Binary::Ldexp => {
            map2(out, a, b, |x: F, exponent: i32| F::from_f64(ldexp(x.real().into(), exponent)))
        }
        Binary::And | Binary::Or | Binary::Xor | Binary::ShiftLeft | Binary::ShiftRight => {
            undefined(f, ty)
        }
    }
}

pub(super) fn ternary<F: Float>(f: Ternary, ty: Ty, out: Out<'_>, a: In<'_>, b: In<'_>, c: In<'_>) {
    let (zero, one) = (F::Real::from(0.0), F::Real::from(1.0));
    let (two, three) = (F::Real::from(2.0), F::Real::from(3.0));
    match f {
        Ternary::Fma => map3(out, a, b, c, F::fma),
        Ternary::Clamp => real3::<F>(out, a, b, c, |x, low, high| minimum(maximum(x, low), high)),
        Ternary::Mix => real3::<F>(out, a, b, c, |x, y, t| x * (one - t) + y * t),
        Ternary::SmoothStep => real3::<F>(out, a, b, c, |low, high, x| {
            let t = minimum(maximum((x - low) / (high - low), zero), one);
            t * t * (three - two * t)
        }),
        Ternary::Select | Ternary::ExtractBits => undefined(f, ty),
    }
}

#[inline]
fn real1<F: Float>(out: Out<'_>, a: In<'_>, f: impl Fn(F::Real) -> F::Real) {
    map1(out, a, |x: F| F::from_real(f(x.real())));
}

#[inline]
fn real2<F: Float>(out: Out<'_>, a: In<'_>, b: In<'_>, f: impl Fn(F::Real, F::Real) -> F::Real) {
    map2(out, a, b, |x: F, y: F| F::from_real(f(x.real(), y.real())));
}

#[inline]
fn real3<F: Float>(
    out: Out<'_>,
    a: In<'_>,
    b: In<'_>,
    c: In<'_>,
    f: impl Fn(F::Real, F::Real, F::Real) -> F::Real,
) {
    map3(out, a, b, c, |x: F, y: F, z: F| F::from_real(f(x.real(), y.real(), z.real())));
}

#[inline]
fn compare<F: Float>(out: Out<'_>, a: In<'_>, b: In<'_>, f: impl Fn(F::Real, F::Real) -> bool) {
    map2(out, a, b, |x: F, y: F| f(x.real(), y.real()));
}

#[inline]
fn f64_1<F: Float>(out: Out<'_>, a: In<'_>, f: impl Fn(f64) -> f64) {
    map1(out, a, |x: F| F::from_f64(f(x.real().into())));
}

#[inline]
fn f64_2<F: Float>(out: Out<'_>, a: In<'_>, b: In<'_>, f: impl Fn(f64, f64) -> f64) {
    map2(out, a, b, |x: F, y: F| F::from_f64(f(x.real().into(), y.real().into())));
}

/// The lesser value, or the number if the other is NaN. If both are equal (zeros of both signs),
/// the second.
#[inline]
pub(super) fn minimum<R: Real>(a: R, b: R) -> R {
    if (a < b) | b.is_nan() { a } else { b }
}

/// The greater value, with the rules of [`minimum`].
#[inline]
pub(super) fn maximum<R: Real>(a: R, b: R) -> R {
    if (a > b) | b.is_nan() { a } else { b }
}

/// NaN for a negative base, as on devices: WGSL defines it by exp2(y * log2(x)).
fn power(x: f64, y: f64) -> f64 {
    if x < 0.0 { f64::NAN } else { x.powf(y) }
}

/// x = fraction * 2^exponent with |fraction| in [0.5, 1); zeros, infinities and NaN are returned as
/// they are, with exponent 0.
fn frexp(x: f64) -> (f64, i32) {
    const LEAST_NORMAL: f64 = f64::MIN_POSITIVE;
    const TWO_54: f64 = (1_u64 << 54) as f64;
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let (normal, scale) = if x.abs() < LEAST_NORMAL { (x * TWO_54, 54) } else { (x, 0) };
    let bits = normal.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1022;
    (f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52), exponent - scale)
}

/// x * 2^exponent, rounded once.
fn ldexp(x: f64, exponent: i32) -> f64 {
    /// 2^exponent, which must be a normal number.
    fn power_of_two(exponent: i32) -> f64 {
        f64::from_bits(((exponent + 1023) as u64) << 52)
    }
    // Beyond these exponents every finite x has become an infinity or zero. Steps down leave the
    // last step so large that no earlier step rounds: only the last can reach the subnormals.
    let mut exponent = exponent.clamp(-2200, 2200);
    let mut x = x;
    while exponent > 1023 {
        x *= power_of_two(1023);
        exponent -= 1023;
    }
    while exponent < -1022 {
        x *= power_of_two(-1022 + 53);
        exponent += 1022 - 53;
    }
    x * power_of_two(exponent)
}
