//! Planes as iterators over values of Rust's types.

use super::{In, Out};

/// A scalar as it is held in registers.
pub(super) trait Lane: Copy {
    fn read(planes: In<'_>) -> impl Iterator<Item = Self>;
    fn write(out: Out<'_>, values: impl Iterator<Item = Self>);
}

/// Implements [`Lane`] for types of one register, by conversions from and to its 32 bits.
macro_rules! narrow {
    ($type:ty, $from:expr, $to:expr) => {
        impl $crate::machine::arith::lane::Lane for $type {
            #[inline]
            fn read(planes: $crate::machine::arith::In<'_>) -> impl Iterator<Item = Self> {
                planes[0].iter().map(|&bits| $from(bits))
            }

            #[inline]
            fn write(out: $crate::machine::arith::Out<'_>, values: impl Iterator<Item = Self>) {
                let [out, _] = out;
                for (out, value) in out.iter_mut().zip(values) {
                    *out = $to(value);
                }
            }
        }
    };
}
pub(super) use narrow;

narrow!(bool, |bits: u32| bits != 0, u32::from);
narrow!(i16, |bits: u32| bits as i16, |value: i16| i32::from(value) as u32);
narrow!(u16, |bits: u32| bits as u16, u32::from);
narrow!(i32, |bits: u32| bits as i32, |value: i32| value as u32);
narrow!(u32, |bits: u32| bits, |value: u32| value);
narrow!(f32, f32::from_bits, f32::to_bits);

/// Implements [`Lane`] for types of two registers, by conversions from and to their 64 bits.
macro_rules! wide {
    ($type:ty, $from:expr, $to:expr) => {
        impl Lane for $type {
            #[inline]
            fn read([low, high]: In<'_>) -> impl Iterator<Item = Self> {
                low.iter()
                    .zip(high)
                    .map(|(&low, &high)| $from(u64::from(low) | u64::from(high) << 32))
            }

            #[inline]
            fn write([low, high]: Out<'_>, values: impl Iterator<Item = Self>) {
                for ((low, high), value) in low.iter_mut().zip(high).zip(values) {
                    let bits: u64 = $to(value);
                    (*low, *high) = (bits as u32, (bits >> 32) as u32);
                }
            }
        }
    };
}

wide!(i64, |bits: u64| bits as i64, |value: i64| value as u64);
wide!(u64, |bits: u64| bits, |value: u64| value);
wide!(f64, f64::from_bits, f64::to_bits);

#[inline]
pub(super) fn map1<A: Lane, R: Lane>(out: Out<'_>, a: In<'_>, f: impl Fn(A) -> R) {
    R::write(out, A::read(a).map(f));
}

#[inline]
pub(super) fn map2<A: Lane, B: Lane, R: Lane>(
    out: Out<'_>,
    a: In<'_>,
    b: In<'_>,
    f: impl Fn(A, B) -> R,
) {
    R::write(out, A::read(a).zip(B::read(b)).map(|(a, b)| f(a, b)));
}

#[inline]
pub(super) fn map3<A: Lane, B: Lane, C: Lane, R: Lane>(
    out: Out<'_>,
    a: In<'_>,
    b: In<'_>,
    c: In<'_>,
    f: impl Fn(A, B, C) -> R,
) {
    R::write(out, A::read(a).zip(B::read(b)).zip(C::read(c)).map(|((a, b), c)| f(a, b, c)));
}
