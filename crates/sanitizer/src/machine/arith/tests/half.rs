//! f16, exhaustively if a function has one argument.

use std::sync::LazyLock;

use super::super::half::{round, widen};
use super::*;

/// The value of every f16 of positive sign. The value after the greatest stands for infinity in
/// rounding.
static VALUES: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let magnitude = |bits: u32| match bits >> 10 {
        0 => f64::from(bits) * 2.0_f64.powi(-24),
        exponent => f64::from(1024 + (bits & 0x3ff)) * 2.0_f64.powi(exponent as i32 - 25),
    };
    (0..=0x7c00).map(magnitude).collect()
});

/// The f16 nearest to `x`, ties to even, by search.
pub(super) fn nearest(x: f64) -> u64 {
    if x.is_nan() {
        return 0x7e00;
    }
    let above = VALUES.partition_point(|&value| value < x.abs()).min(0x7c00);
    let bits = match above.checked_sub(1) {
        None => 0,
        Some(below) => {
            let middle = (VALUES[below] + VALUES[above]) / 2.0;
            let up = x.abs() > middle || x.abs() == middle && above % 2 == 0;
            if up { above } else { below }
        }
    };
    bits as u64 | u64::from(x.is_sign_negative()) << 15
}

fn value(bits: u64) -> f64 {
    match (bits & 0x7fff) as usize {
        0x7c00 => f64::INFINITY,
        magnitude => VALUES.get(magnitude).copied().unwrap_or(f64::NAN),
    }
    .copysign(if bits & 0x8000 == 0 { 1.0 } else { -1.0 })
}

fn all() -> Vec<u64> {
    (0..=0xffff).collect()
}

#[test]
fn widening_is_exact() {
    for bits in 0..=0xffff_u32 {
        let (got, expected) = (widen(bits), ::half::f16::from_bits(bits as u16).to_f32());
        assert!(
            got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(),
            "{bits:#x}"
        );
        assert_same(Ty::F16, u64::from(round(got)), u64::from(bits), "round trip");
        assert_eq!(f64::from(got).to_bits() >> 63, u64::from(bits >> 15));
        assert!(got.is_nan() || f64::from(got) == value(u64::from(bits)));
    }
}

#[test]
fn rounding_is_to_nearest_even() {
    for (below, pair) in VALUES.windows(2).enumerate() {
        let (below, above) = (below as u32, below as u32 + 1);
        let middle = ((pair[0] + pair[1]) / 2.0) as f32;
        let even = if below % 2 == 0 { below } else { above };
        let cases = [(middle, even), (middle.next_down(), below), (middle.next_up(), above)];
        for (x, expected) in cases {
            assert_eq!(round(x), expected, "{x:e}");
            assert_eq!(round(-x), expected | 0x8000, "{x:e}");
        }
    }
    for bits in (0..=u32::MAX).step_by(4099) {
        let x = f32::from_bits(bits);
        assert_same(Ty::F16, u64::from(round(x)), u64::from(::half::f16::from_f32(x).to_bits()), x);
    }
    for x in [f32::INFINITY, f32::MAX, 65520.0, f32::from_bits(1), f32::NAN] {
        assert_same(Ty::F16, u64::from(round(-x)), nearest(f64::from(-x)), x);
    }
}

#[test]
fn every_function_of_one_argument_is_rounded_once() {
    let pi = std::f32::consts::PI;
    let functions: [(Unary, &dyn Fn(f64) -> f64); 30] = [
        (Unary::Negate, &|x| -x),
        (Unary::Abs, &f64::abs),
        (Unary::Sign, &|x| f64::from(i32::from(x > 0.0) - i32::from(x < 0.0))),
        (Unary::Ceil, &f64::ceil),
        (Unary::Floor, &f64::floor),
        (Unary::Round, &f64::round_ties_even),
        (Unary::Trunc, &f64::trunc),
        (Unary::Fract, &|x| x - x.floor()),
        (Unary::Saturate, &|x| {
            if x > 1.0 {
                1.0
            } else if x > 0.0 {
                x
            } else {
                0.0
            }
        }),
        (Unary::Sqrt, &f64::sqrt),
        (Unary::InverseSqrt, &|x| 1.0 / x.sqrt()),
        (Unary::Exp, &f64::exp),
        (Unary::Exp2, &f64::exp2),
        (Unary::Log, &f64::ln),
        (Unary::Log2, &f64::log2),
        (Unary::Sin, &f64::sin),
        (Unary::Cos, &f64::cos),
        (Unary::Tan, &f64::tan),
        (Unary::Sinh, &f64::sinh),
        (Unary::Cosh, &f64::cosh),
        (Unary::Tanh, &f64::tanh),
        (Unary::Asin, &f64::asin),
        (Unary::Acos, &f64::acos),
        (Unary::Atan, &f64::atan),
        (Unary::Asinh, &f64::asinh),
        (Unary::Acosh, &f64::acosh),
        (Unary::Atanh, &f64::atanh),
        (Unary::Radians, &|x| f64::from(x as f32 * (pi / 180.0))),
        (Unary::Degrees, &|x| f64::from(x as f32 * (180.0 / pi))),
        (Unary::FrexpFraction, &|x| {
            if x == 0.0 || !x.is_finite() {
                x
            } else {
                x / 2.0_f64.powi(x.abs().log2().floor() as i32 + 1)
            }
        }),
    ];
    for (f, expected) in functions {
        for (bits, got) in all().into_iter().zip(apply1(f, Ty::F16, Ty::F16, &all())) {
            let expected = nearest(expected(value(bits)));
            // The sign of a zero is not prescribed if an integer part or a clamp makes it.
            let zeros = got & 0x7fff == 0
                && expected & 0x7fff == 0
                && f != Unary::Negate
                && f != Unary::Abs;
            if !zeros {
                assert_same(Ty::F16, got, expected, (f, value(bits)));
            }
        }
    }
}

#[test]
fn classes_and_exponents() {
    let given = |f, result| apply1(f, Ty::F16, result, &all());
    let (nan, infinite, exponents) = (
        given(Unary::IsNan, Ty::Bool),
        given(Unary::IsInf, Ty::Bool),
        given(Unary::FrexpExponent, Ty::I32),
    );
    for bits in 0..=0xffff_usize {
        let x = value(bits as u64);
        assert_eq!(nan[bits], u64::from(x.is_nan()));
        assert_eq!(infinite[bits], u64::from(x.is_infinite()));
        let exponent =
            if x == 0.0 || !x.is_finite() { 0 } else { x.abs().log2().floor() as i32 + 1 };
        assert_eq!(exponents[bits] as i32, exponent, "{x}");
    }
}

#[test]
fn arithmetic_is_rounded_once() {
    let values: Vec<u64> = random().map(|x| x & 0xffff).take(400_000).collect();
    let (a, b) = values.split_at(200_000);
    let functions: [(Binary, Operation<f64>); 10] = [
        (Binary::Add, |x, y| x + y),
        (Binary::Subtract, |x, y| x - y),
        (Binary::Multiply, |x, y| x * y),
        (Binary::Divide, |x, y| x / y),
        (Binary::Modulo, |x, y| {
            let (x, y) = (x as f32, y as f32);
            f64::from(x - y * (x / y).trunc())
        }),
        (Binary::Min, f64::min),
        (Binary::Max, f64::max),
        (Binary::Step, |edge, x| f64::from(u8::from(edge <= x))),
        (Binary::Pow, |x, y| if x < 0.0 { f64::NAN } else { x.powf(y) }),
        (Binary::Atan2, f64::atan2),
    ];
    for (f, expected) in functions {
        for ((&x, &y), got) in a.iter().zip(b).zip(apply2(f, [Ty::F16; 3], a, b)) {
            assert_same(
                Ty::F16,
                got,
                nearest(expected(value(x), value(y))),
                (f, value(x), value(y)),
            );
        }
    }
}

/// In units of 2^-48 products and sums of f16 are integers.
#[test]
fn fma_is_rounded_once() {
    let finite = |x: &u64| x & 0x7c00 != 0x7c00;
    // Half of the factors have random exponents, the others are near 1, where sums cancel and tie.
    let near = |x: u64| if x & 1 << 20 == 0 { x & 0xffff } else { 0x3800 + (x & 0x87ff) };
    let values: Vec<u64> = random().map(near).filter(finite).take(900_000).collect();
    let (a, rest) = values.split_at(300_000);
    let (b, c) = rest.split_at(300_000);
    let units = |bits: u64| (value(bits) * 2.0_f64.powi(24)) as i128;
    for (((&x, &y), &z), got) in
        a.iter().zip(b).zip(c).zip(apply3(Ternary::Fma, [Ty::F16; 2], a, b, c))
    {
        let exact = units(x) * units(y) + (units(z) << 24);
        // Rounding to 53 bits may only lose a nonzero tail far below, which is kept as an odd last
        // bit.
        let shift = (128 - exact.unsigned_abs().leading_zeros()).saturating_sub(52);
        let (kept, lost) = (exact.abs() >> shift, exact.abs() & ((1 << shift) - 1));
        let magnitude = (kept | i128::from(lost != 0)) as f64 * 2.0_f64.powi(shift as i32 - 48);
        let expected = nearest(if exact < 0 { -magnitude } else { magnitude });
        if exact != 0 {
            assert_same(Ty::F16, got, expected, ("fma", value(x), value(y), value(z)));
        } else {
            assert_eq!(got & 0x7fff, 0);
        }
    }
}

#[test]
fn fma_where_two_roundings_would_differ() {
    // (1 + 2^-6)(1 + 2^-5) lies between, at 1 + 3 * 2^-6 + 2^-11: a tie that the third operand
    // decides.
    let (x, y) = (0x3c10, 0x3c20);
    let (up, down) = (0x0001, 0x8001);
    assert_eq!(
        apply3(Ternary::Fma, [Ty::F16; 2], &[x, x, x], &[y, y, y], &[0, up, down]),
        [0x3c30, 0x3c31, 0x3c30]
    );
    assert_eq!(apply3(Ternary::Fma, [Ty::F16; 2], &[0x7c00], &[0], &[0x3c00])[0] & 0x7fff, 0x7e00);
    assert_eq!(apply3(Ternary::Fma, [Ty::F16; 2], &[0x7bff], &[0x7bff], &[0xfc00]), [0xfc00]);
}
