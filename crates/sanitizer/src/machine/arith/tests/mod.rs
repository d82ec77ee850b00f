//! Tests of every function and type against an independent oracle: i128 for integers, f64 and the
//! nearest representable value for floats, and values worked out by hand.

mod convert;
mod float;
mod half;
mod integer;
mod pack;

use super::*;

const INTEGERS: [Ty; 6] = [Ty::I16, Ty::U16, Ty::I32, Ty::U32, Ty::I64, Ty::U64];
const FLOATS: [Ty; 3] = [Ty::F16, Ty::F32, Ty::F64];

/// A function of two values that gives the expected result.
type Operation<T> = fn(T, T) -> T;
type Relation<T> = fn(&T, &T) -> bool;

/// A value's two planes, for many values.
struct Planes([Vec<u32>; 2]);

impl Planes {
    fn of(values: &[u64]) -> Planes {
        Planes([
            values.iter().map(|&x| x as u32).collect(),
            values.iter().map(|&x| (x >> 32) as u32).collect(),
        ])
    }

    /// Planes for `count` values of `ty`, without a second plane for narrow types.
    fn blank(ty: Ty, count: usize) -> Planes {
        Planes([vec![0xdead_beef; count], vec![0xdead_beef; if ty.is_wide() { count } else { 0 }]])
    }

    fn input(&self, ty: Ty) -> In<'_> {
        [&self.0[0], if ty.is_wide() { &self.0[1] } else { &[] }]
    }

    fn output(&mut self) -> Out<'_> {
        let [low, high] = &mut self.0;
        [low, high]
    }

    fn values(self) -> Vec<u64> {
        let [low, high] = self.0;
        let high = high.into_iter().chain(std::iter::repeat(0));
        low.into_iter()
            .zip(high)
            .map(|(low, high)| u64::from(low) | u64::from(high) << 32)
            .collect()
    }
}

fn apply1(f: Unary, ty: Ty, result: Ty, a: &[u64]) -> Vec<u64> {
    let mut out = Planes::blank(result, a.len());
    unary(f, ty, out.output(), Planes::of(a).input(ty));
    out.values()
}

/// Applies a binary function; `second` is the type of `b`, `result` the type of the result.
fn apply2(f: Binary, [ty, second, result]: [Ty; 3], a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut out = Planes::blank(result, a.len());
    binary(f, ty, out.output(), Planes::of(a).input(ty), Planes::of(b).input(second));
    out.values()
}

/// Applies a ternary function; `rest` is the type of `b` and `c`.
fn apply3(f: Ternary, [ty, rest]: [Ty; 2], a: &[u64], b: &[u64], c: &[u64]) -> Vec<u64> {
    let mut out = Planes::blank(ty, a.len());
    let (a, b, c) = (Planes::of(a), Planes::of(b), Planes::of(c));
    ternary(f, ty, out.output(), a.input(ty), b.input(rest), c.input(rest));
    out.values()
}

/// A sequence without structure, the same in every run.
fn random() -> impl Iterator<Item = u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    })
}

/// All pairs of `values`, as two lists.
fn pairs(values: &[u64]) -> (Vec<u64>, Vec<u64>) {
    values.iter().flat_map(|&a| values.iter().map(move |&b| (a, b))).unzip()
}

fn is_nan(ty: Ty, bits: u64) -> bool {
    match ty {
        Ty::F16 => bits & 0x7fff > 0x7c00,
        Ty::F32 => f32::from_bits(bits as u32).is_nan(),
        _ => f64::from_bits(bits).is_nan(),
    }
}

/// Equal bits, or both NaN.
#[track_caller]
fn assert_same(ty: Ty, got: u64, expected: u64, what: impl std::fmt::Debug) {
    let same = got == expected || ty.is_float() && is_nan(ty, got) && is_nan(ty, expected);
    assert!(same, "{what:?} of {ty:?}: {got:#x}, expected {expected:#x}");
}

#[test]
fn bool_functions_are_the_truth_tables() {
    let (a, b) = ([0, 0, 1, 1], [0, 1, 0, 1]);
    let table = |f| apply2(f, [Ty::Bool; 3], &a, &b);
    assert_eq!(table(Binary::And), [0, 0, 0, 1]);
    assert_eq!(table(Binary::Or), [0, 1, 1, 1]);
    assert_eq!(table(Binary::Xor), [0, 1, 1, 0]);
    assert_eq!(table(Binary::NotEqual), [0, 1, 1, 0]);
    assert_eq!(table(Binary::Equal), [1, 0, 0, 1]);
    assert_eq!(apply1(Unary::LogicalNot, Ty::Bool, Ty::Bool, &[0, 1]), [1, 0]);
}

#[test]
fn select_moves_bits_of_every_type() {
    let (reject, accept) = ([u64::MAX, 2, 0x7ff0_0000_0000_0001], [0x1234_5678_9abc_def0, 5, 6]);
    for ty in [Ty::Bool].into_iter().chain(INTEGERS).chain(FLOATS) {
        let mut out = Planes::blank(ty, 3);
        let (a, b) = (Planes::of(&reject), Planes::of(&accept));
        ternary(Ternary::Select, ty, out.output(), a.input(ty), b.input(ty), [&[1, 0, 0], &[]]);
        let kept = if ty.is_wide() { u64::MAX } else { u64::from(u32::MAX) };
        assert_eq!(out.values(), [accept[0] & kept, reject[1], reject[2] & kept], "{ty:?}");
    }
}

#[test]
fn scalar_is_one_lane_of_binary() {
    assert_eq!(scalar(Binary::Add, Ty::U32, u64::from(u32::MAX), 2), 1);
    assert_eq!(scalar(Binary::Min, Ty::I32, 5, 0xffff_fffd), 0xffff_fffd);
    assert_eq!(scalar(Binary::Max, Ty::U64, 1 << 40, 7), 1 << 40);
    assert_eq!(scalar(Binary::Add, Ty::U64, u64::from(u32::MAX), 1), 1 << 32);
    assert_eq!(
        scalar(Binary::Multiply, Ty::F64, 3.0_f64.to_bits(), 0.5_f64.to_bits()),
        1.5_f64.to_bits()
    );
    assert_eq!(
        scalar(Binary::Add, Ty::F32, u64::from(1.0_f32.to_bits()), u64::from(2.0_f32.to_bits())),
        0x4040_0000
    );
    assert_eq!(scalar(Binary::Add, Ty::F16, 0x3c00, 0x3c00), 0x4000);
    assert_eq!(scalar(Binary::Less, Ty::I64, u64::MAX, 0), 1);
    assert_eq!(scalar(Binary::And, Ty::Bool, 1, 1), 1);
}

#[test]
#[should_panic(expected = "LogicalNot is not defined for F32")]
fn what_wgsl_does_not_have_is_refused() {
    apply1(Unary::LogicalNot, Ty::F32, Ty::F32, &[0]);
}
