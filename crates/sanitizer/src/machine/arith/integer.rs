//! Functions of integers. They wrap, and are defined for all arguments, unlike C's.

use super::lane::{Lane, map1, map2, map3};
use super::{In, Out, undefined};
use crate::program::{Binary, Ternary, Ty, Unary};

/// Operations that the functions need of Rust's integers.
pub(super) trait Integer: Lane + Ord {
    const BITS: u32;
    const SIGNED: bool;
    const ZERO: Self;

    fn wrapping_neg(self) -> Self;
    fn wrapping_abs(self) -> Self;
    fn signum(self) -> Self;
    fn wrapping_add(self, other: Self) -> Self;
    fn wrapping_sub(self, other: Self) -> Self;
    fn wrapping_mul(self, other: Self) -> Self;
    fn divide(self, by: Self) -> Self;
    fn modulo(self, by: Self) -> Self;
    fn not(self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// Shifts left by `by` modulo the width.
    fn shl(self, by: u32) -> Self;
    /// Shifts right by `by` modulo the width, arithmetically for signed types.
    fn shr(self, by: u32) -> Self;
    /// Shifts right by `by` modulo the width, filling with zeros.
    fn logical_shr(self, by: u32) -> Self;
    fn count_ones(self) -> u32;
    fn leading_zeros(self) -> u32;
    fn trailing_zeros(self) -> u32;
    fn reverse_bits(self) -> Self;
    /// Converts a small number, or -1, which sets every bit.
    fn from_i32(value: i32) -> Self;
}

macro_rules! integer {
    ($($type:ident, $unsigned:ident, $abs:expr, $signum:expr;)*) => {$(
        impl Integer for $type {
            const BITS: u32 = $type::BITS;
            const SIGNED: bool = $type::MIN != 0;
            const ZERO: Self = 0;

            integer!(@ fn wrapping_neg(self) -> Self);
            integer!(@ fn wrapping_add(self, other: Self) -> Self);
            integer!(@ fn wrapping_sub(self, other: Self) -> Self);
            integer!(@ fn wrapping_mul(self, other: Self) -> Self);
            integer!(@ fn count_ones(self) -> u32);
            integer!(@ fn leading_zeros(self) -> u32);
            integer!(@ fn trailing_zeros(self) -> u32);
            integer!(@ fn reverse_bits(self) -> Self);

            #[inline]
            fn wrapping_abs(self) -> Self {
                $abs(self)
            }

            #[inline]
            fn signum(self) -> Self {
                $signum(self)
            }

            #[inline]
            fn divide(self, by: Self) -> Self {
                if by == 0 { self } else { self.wrapping_div(by) }
            }

            #[inline]
            fn modulo(self, by: Self) -> Self {
                if by == 0 { 0 } else { self.wrapping_rem(by) }
            }

            #[inline]
            fn not(self) -> Self {
                !self
            }

            #[inline]
            fn and(self, other: Self) -> Self {
                self & other
            }

            #[inline]
            fn or(self, other: Self) -> Self {
                self | other
            }

            #[inline]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }

            #[inline]
            fn shl(self, by: u32) -> Self {
                self.wrapping_shl(by)
            }

            #[inline]
            fn shr(self, by: u32) -> Self {
                self.wrapping_shr(by)
            }

            #[inline]
            fn logical_shr(self, by: u32) -> Self {
                (self as $unsigned).wrapping_shr(by) as $type
            }

            #[inline]
            fn from_i32(value: i32) -> Self {
                value as $type
            }
        }
    )*};
    (@ fn $name:ident(self $(, $other:ident: Self)?) -> $result:ty) => {
        #[inline]
        fn $name(self $(, $other: Self)?) -> $result {
            self.$name($($other)?)
        }
    };
}
integer! {
    i16, u16, i16::wrapping_abs, i16::signum;
    i32, u32, i32::wrapping_abs, i32::signum;
    i64, u64, i64::wrapping_abs, i64::signum;
    u16, u16, |x| x, |x| u16::from(x != 0);
    u32, u32, |x| x, |x| u32::from(x != 0);
    u64, u64, |x| x, |x| u64::from(x != 0);
}

pub(super) fn unary<I: Integer>(f: Unary, ty: Ty, out: Out<'_>, a: In<'_>) {
    match f {
        Unary::Negate => map1(out, a, I::wrapping_neg),
        Unary::BitwiseNot => map1(out, a, I::not),
        Unary::Abs => map1(out, a, I::wrapping_abs),
        Unary::Sign => map1(out, a, I::signum),
        Unary::CountOneBits => map1(out, a, |x: I| I::from_i32(x.count_ones() as i32)),
        Unary::CountLeadingZeros => map1(out, a, |x: I| I::from_i32(x.leading_zeros() as i32)),
        Unary::CountTrailingZeros => map1(out, a, |x: I| I::from_i32(x.trailing_zeros() as i32)),
        Unary::ReverseBits => map1(out, a, I::reverse_bits),
        Unary::FirstLeadingBit => map1(out, a, first_leading_bit::<I>),
        Unary::FirstTrailingBit => {
            map1(out, a, |x: I| {
                I::from_i32(if x == I::ZERO { -1 } else { x.trailing_zeros() as i32 })
            });
        }
        _ => undefined(f, ty),
    }
}

pub(super) fn binary<I: Integer>(f: Binary, ty: Ty, out: Out<'_>, a: In<'_>, b: In<'_>) {
    match f {
        Binary::Add => map2(out, a, b, I::wrapping_add),
        Binary::Subtract => map2(out, a, b, I::wrapping_sub),
        Binary::Multiply => map2(out, a, b, I::wrapping_mul),
        Binary::Divide => map2(out, a, b, I::divide),
        Binary::Modulo => map2(out, a, b, I::modulo),
        Binary::And => map2(out, a, b, I::and),
        Binary::Or => map2(out, a, b, I::or),
        Binary::Xor => map2(out, a, b, I::xor),
        Binary::ShiftLeft => map2(out, a, b, I::shl),
        Binary::ShiftRight => map2(out, a, b, I::shr),
        Binary::Equal => map2(out, a, b, |x: I, y: I| x == y),
        Binary::NotEqual => map2(out, a, b, |x: I, y: I| x != y),
        Binary::Less => map2(out, a, b, |x: I, y: I| x < y),
        Binary::LessEqual => map2(out, a, b, |x: I, y: I| x <= y),
        Binary::Greater => map2(out, a, b, |x: I, y: I| x > y),
        Binary::GreaterEqual => map2(out, a, b, |x: I, y: I| x >= y),
        Binary::Min => map2(out, a, b, I::min),
        Binary::Max => map2(out, a, b, I::max),
        Binary::Pow | Binary::Atan2 | Binary::Step | Binary::Ldexp => undefined(f, ty),
    }
}

pub(super) fn ternary<I: Integer>(
    f: Ternary,
    ty: Ty,
    out: Out<'_>,
    a: In<'_>,
    b: In<'_>,
    c: In<'_>,
) {
    match f {
        // Not Ord::clamp, which panics if low > high.
        Ternary::Clamp => map3(out, a, b, c, |x: I, low: I, high: I| x.max(low).min(high)),
        Ternary::ExtractBits => map3(out, a, b, c, extract_bits::<I>),
        Ternary::Fma | Ternary::Mix | Ternary::SmoothStep | Ternary::Select => undefined(f, ty),
    }
}

pub(super) fn insert_bits<I: Integer>(
    out: Out<'_>,
    x: In<'_>,
    new: In<'_>,
    offset: In<'_>,
    count: In<'_>,
) {
    let fields = u32::read(offset).zip(u32::read(count));
    let lanes = I::read(x).zip(I::read(new)).zip(fields);
    I::write(
        out,
        lanes.map(|((x, new), (offset, count))| {
            let (offset, count) = field::<I>(offset, count);
            if count == 0 {
                return x;
            }
            let mask = I::from_i32(-1).logical_shr(I::BITS - count).shl(offset);
            x.and(mask.not()).or(new.shl(offset).and(mask))
        }),
    );
}

/// The highest set bit; for signed types the highest bit that differs from the sign. -1 if there is
/// none.
#[inline]
fn first_leading_bit<I: Integer>(x: I) -> I {
    let x = if I::SIGNED && x < I::ZERO { x.not() } else { x };
    I::from_i32(I::BITS as i32 - 1 - x.leading_zeros() as i32)
}

#[inline]
fn extract_bits<I: Integer>(x: I, offset: u32, count: u32) -> I {
    let (offset, count) = field::<I>(offset, count);
    if count == 0 { I::ZERO } else { x.shl(I::BITS - count - offset).shr(I::BITS - count) }
}

/// Offset and count clamped to the width.
#[inline]
fn field<I: Integer>(offset: u32, count: u32) -> (u32, u32) {
    let offset = offset.min(I::BITS);
    (offset, count.min(I::BITS - offset))
}
