//! The arithmetic of one operation over whole planes: WGSL's results, lane by lane.
//!
//! Functions and types are matched once per plane; the loops within are plain iterators over lanes,
//! which the compiler turns into vector code. f32 addition, subtraction, multiplication, division,
//! square root and fma are IEEE's, rounded once to nearest, and keep subnormals. f16 is computed in
//! f32 and rounded once. Functions that devices only approximate (exp, sin, pow, ...) are computed
//! in f64 and rounded: they give the true values except for very rare double roundings. Devices
//! differ from them within WGSL's bounds.

mod convert;
mod float;
mod half;
mod integer;
mod lane;
mod pack;
#[cfg(test)]
mod tests;

use crate::program::{Binary, Ternary, Ty, Unary};

pub(crate) use convert::convert;
use half::Half;
pub use half::to_odd;
use lane::{map1, map2, map3};
pub(crate) use pack::pack;

/// The planes of a result; the second is empty unless the type is wide.
pub(crate) type Out<'a> = [&'a mut [u32]; 2];

/// The planes of an operand, as [`Out`].
pub(crate) type In<'a> = [&'a [u32]; 2];

/// `out = f(a)`, `a` being of `ty`.
pub(crate) fn unary(f: Unary, ty: Ty, out: Out<'_>, a: In<'_>) {
    match ty {
        Ty::Bool => match f {
            Unary::LogicalNot => map1(out, a, |x: bool| !x),
            _ => undefined(f, ty),
        },
        Ty::I16 => integer::unary::<i16>(f, ty, out, a),
        Ty::U16 => integer::unary::<u16>(f, ty, out, a),
        Ty::I32 => integer::unary::<i32>(f, ty, out, a),
        Ty::U32 => integer::unary::<u32>(f, ty, out, a),
        Ty::I64 => integer::unary::<i64>(f, ty, out, a),
        Ty::U64 => integer::unary::<u64>(f, ty, out, a),
        Ty::F16 => float::unary::<Half>(f, ty, out, a),
        Ty::F32 => float::unary::<f32>(f, ty, out, a),
        Ty::F64 => float::unary::<f64>(f, ty, out, a),
    }
}

/// `out = f(a, b)`, both of `ty` unless `f` says otherwise.
pub(crate) fn binary(f: Binary, ty: Ty, out: Out<'_>, a: In<'_>, b: In<'_>) {
    match ty {
        Ty::Bool => match f {
            Binary::And => map2(out, a, b, |x: bool, y: bool| x & y),
            Binary::Or => map2(out, a, b, |x: bool, y: bool| x | y),
            Binary::Xor | Binary::NotEqual => map2(out, a, b, |x: bool, y: bool| x ^ y),
            Binary::Equal => map2(out, a, b, |x: bool, y: bool| x == y),
            _ => undefined(f, ty),
        },
        Ty::I16 => integer::binary::<i16>(f, ty, out, a, b),
        Ty::U16 => integer::binary::<u16>(f, ty, out, a, b),
        Ty::I32 => integer::binary::<i32>(f, ty, out, a, b),
        Ty::U32 => integer::binary::<u32>(f, ty, out, a, b),
        Ty::I64 => integer::binary::<i64>(f, ty, out, a, b),
        Ty::U64 => integer::binary::<u64>(f, ty, out, a, b),
        Ty::F16 => float::binary::<Half>(f, ty, out, a, b),
        Ty::F32 => float::binary::<f32>(f, ty, out, a, b),
        Ty::F64 => float::binary::<f64>(f, ty, out, a, b),
    }
}

/// `out = f(a, b, c)`, all of `ty` unless `f` says otherwise.
pub(crate) fn ternary(f: Ternary, ty: Ty, out: Out<'_>, a: In<'_>, b: In<'_>, c: In<'_>) {
    if f == Ternary::Select {
        return select(ty, out, a, b, c[0]);
    }
    match ty {
        Ty::Bool => undefined(f, ty),
        Ty::I16 => integer::ternary::<i16>(f, ty, out, a, b, c),
        Ty::U16 => integer::ternary::<u16>(f, ty, out, a, b, c),
        Ty::I32 => integer::ternary::<i32>(f, ty, out, a, b, c),
        Ty::U32 => integer::ternary::<u32>(f, ty, out, a, b, c),
        Ty::I64 => integer::ternary::<i64>(f, ty, out, a, b, c),
        Ty::U64 => integer::ternary::<u64>(f, ty, out, a, b, c),
        Ty::F16 => float::ternary::<Half>(f, ty, out, a, b, c),
        Ty::F32 => float::ternary::<f32>(f, ty, out, a, b, c),
        Ty::F64 => float::ternary::<f64>(f, ty, out, a, b, c),
    }
}

/// WGSL's `insertBits`: `x` with `count` bits from `offset` on replaced by the low ones of `new`;
/// `offset` and `count` are u32.
pub(crate) fn insert_bits(
    ty: Ty,
    out: Out<'_>,
    x: In<'_>,
    new: In<'_>,
    offset: In<'_>,
    count: In<'_>,
) {
    match ty {
        Ty::I16 => integer::insert_bits::<i16>(out, x, new, offset, count),
        Ty::U16 => integer::insert_bits::<u16>(out, x, new, offset, count),
        Ty::I32 => integer::insert_bits::<i32>(out, x, new, offset, count),
        Ty::U32 => integer::insert_bits::<u32>(out, x, new, offset, count),
        Ty::I64 => integer::insert_bits::<i64>(out, x, new, offset, count),
        Ty::U64 => integer::insert_bits::<u64>(out, x, new, offset, count),
        Ty::Bool | Ty::F16 | Ty::F32 | Ty::F64 => undefined("insertBits", ty),
    }
}

/// Like [`binary`], for one lane, for atomics and reductions. Values are raw bits, as in registers.
pub(crate) fn scalar(f: Binary, ty: Ty, a: u64, b: u64) -> u64 {
    let split = |x: u64| [[x as u32], [(x >> 32) as u32]];
    let (a, b, mut out) = (split(a), split(b), split(0));
    let [low, high] = &mut out;
    binary(f, ty, [low, high], [&a[0], &a[1]], [&b[0], &b[1]]);
    u64::from(out[0][0]) | u64::from(out[1][0]) << 32
}

/// Selects by moving bits, in one loop for all types.
fn select(ty: Ty, out: Out<'_>, reject: In<'_>, accept: In<'_>, condition: &[u32]) {
    let planes = out.into_iter().zip(reject).zip(accept).take(ty.planes() as usize);
    for ((out, reject), accept) in planes {
        let [reject, accept, condition] = [reject, accept, condition].map(|plane| [plane, &[]]);
        map3(
            [out, &mut []],
            reject,
            accept,
            condition,
            |r: u32, a: u32, c: bool| if c { a } else { r },
        );
    }
}

/// Panics for a function that WGSL does not have for a type. Validation refuses it, so it never
/// reaches the machine.
#[cold]
fn undefined(f: impl std::fmt::Debug, ty: Ty) -> ! {
    panic!("{f:?} is not defined for {ty:?}; validated WGSL cannot ask for it")
}
