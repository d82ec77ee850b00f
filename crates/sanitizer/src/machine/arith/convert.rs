//! Value conversions between scalar types.

use super::half::Half;
use super::lane::{Lane, map1};
use super::{In, Out};
use crate::program::Ty;

/// `out = to(a)` by value, as in WGSL. A float becomes the integer nearest to its truncation, among
/// the integers that the float type holds, too: `i32(1e20f)` is 2147483520, and NaN becomes 0.
/// Conversions to floats round to nearest, ties to even. Integers wrap when they become other
/// integers. A bool is "not zero", and becomes 0 or 1.
pub(crate) fn convert(from: Ty, to: Ty, out: Out<'_>, a: In<'_>) {
    match from {
        Ty::Bool => convert_from::<bool>(to, out, a),
        Ty::I16 => convert_from::<i16>(to, out, a),
        Ty::U16 => convert_from::<u16>(to, out, a),
        Ty::F16 => convert_from::<Half>(to, out, a),
        Ty::I32 => convert_from::<i32>(to, out, a),
        Ty::U32 => convert_from::<u32>(to, out, a),
        Ty::F32 => convert_from::<f32>(to, out, a),
        Ty::I64 => convert_from::<i64>(to, out, a),
        Ty::U64 => convert_from::<u64>(to, out, a),
        Ty::F64 => convert_from::<f64>(to, out, a),
    }
}

fn convert_from<T: Convert>(to: Ty, out: Out<'_>, a: In<'_>) {
    match to {
        Ty::Bool => map1(out, a, T::bool),
        Ty::I16 => map1(out, a, T::i16),
        Ty::U16 => map1(out, a, T::u16),
        Ty::F16 => map1(out, a, T::half),
        Ty::I32 => map1(out, a, T::i32),
        Ty::U32 => map1(out, a, T::u32),
        Ty::F32 => map1(out, a, T::f32),
        Ty::I64 => map1(out, a, T::i64),
        Ty::U64 => map1(out, a, T::u64),
        Ty::F64 => map1(out, a, T::f64),
    }
}

/// A scalar as every type.
trait Convert: Lane {
    fn bool(self) -> bool;
    fn half(self) -> Half;
    fn i16(self) -> i16;
    fn u16(self) -> u16;
    fn i32(self) -> i32;
    fn u32(self) -> u32;
    fn f32(self) -> f32;
    fn i64(self) -> i64;
    fn u64(self) -> u64;
    fn f64(self) -> f64;
}

macro_rules! from_integer {
    ($($type:ident, $number:expr;)*) => {$(
        impl Convert for $type {
            #[inline]
            fn bool(self) -> bool {
                not_zero(self)
            }

            /// Rounding by way of f32 changes no result: integers that f32 does not hold are
            /// infinite in f16.
            #[inline]
            fn half(self) -> Half {
                Half($number(self) as f32)
            }

            from_integer!(@ $number, i16 u16 i32 u32 f32 i64 u64 f64);
        }
    )*};
    (@ $number:expr, $($to:ident)*) => {$(
        #[inline]
        fn $to(self) -> $to {
            $number(self) as $to
        }
    )*};
}
from_integer! {
    bool, u8::from;
    i16, i16::from;
    u16, u16::from;
    i32, i32::from;
    u32, u32::from;
    i64, i64::from;
    u64, u64::from;
}

/// Conversions of floats. The greatest finite value is that of the type itself, not of the type
/// that holds it.
macro_rules! from_float {
    ($($type:ty, $real:ident, $number:expr, $half:expr, $digits:expr, $greatest:expr;)*) => {$(
        impl Convert for $type {
            #[inline]
            fn bool(self) -> bool {
                not_zero($number(self))
            }

            #[inline]
            fn half(self) -> Half {
                $half(self)
            }

            #[inline]
            fn f32(self) -> f32 {
                $number(self) as f32
            }

            #[inline]
            fn f64(self) -> f64 {
                f64::from($number(self))
            }

            from_float!(@ $real, $number, $digits, $greatest, i16 u16 i32 u32 i64 u64);
        }
    )*};
    (@ $real:ident, $number:expr, $digits:expr, $greatest:expr, $($to:ident)*) => {$(
        #[inline]
        fn $to(self) -> $to {
            const TOP: $real = {
                let spare = ($to::BITS - $to::MAX.leading_zeros()).saturating_sub($digits);
                (($to::MAX >> spare << spare) as $real).min($greatest)
            };
            $number(self).clamp(-$greatest, TOP) as $to
        }
    )*};
}
from_float! {
    f32, f32, f32::from, Half, f32::MANTISSA_DIGITS, f32::MAX;
    f64, f64, f64::from, Half::from_f64, f64::MANTISSA_DIGITS, f64::MAX;
    Half, f32, |x: Half| x.0, |x| x, 11, 65504.0;
}

#[inline]
fn not_zero<T: PartialEq + Default>(x: T) -> bool {
    x != T::default()
}
