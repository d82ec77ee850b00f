//! Conversions of value.

use super::half::nearest;
use super::*;

fn converted(from: Ty, to: Ty, values: &[u64]) -> Vec<u64> {
    let mut out = Planes::blank(to, values.len());
    convert(from, to, out.output(), Planes::of(values).input(from));
    out.values()
}

fn float(ty: Ty, x: f64) -> u64 {
    match ty {
        Ty::F16 => nearest(x),
        Ty::F32 => u64::from((x as f32).to_bits()),
        _ => x.to_bits(),
    }
}

fn integer(ty: Ty, x: i128) -> u64 {
    match ty {
        Ty::I16 => u64::from(i32::from(x as i16) as u32),
        Ty::U16 => u64::from(x as u16),
        Ty::I32 | Ty::U32 => u64::from(x as u32),
        _ => x as u64,
    }
}

/// The least and the greatest number of an integer type.
fn range(ty: Ty) -> (i128, i128) {
    let bits = ty.bits() - u32::from(ty.is_signed());
    (if ty.is_signed() { -1 << bits } else { 0 }, (1 << bits) - 1)
}

/// The value of a float of `ty` nearest to `x`, and the one below it.
fn held(ty: Ty, x: f64) -> [f64; 2] {
    let half = |bits: u64| f64::from(::half::f16::from_bits(bits as u16));
    match ty {
        Ty::F16 => [half(nearest(x)), half(nearest(x).saturating_sub(1))],
        Ty::F32 => [f64::from(x as f32), f64::from((x as f32).next_down())],
        _ => [x, x.next_down()],
    }
}

#[test]
fn floats_to_integers_truncate_and_saturate_at_what_both_types_hold() {
    let values = [
        0.0,
        -0.0,
        0.9,
        -0.9,
        1.5,
        -1.5,
        300.0,
        -40_000.0,
        40_000.0,
        65_504.0,
        1e9,
        -3e9,
        1e30,
        -1e30,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    for (from, to) in FLOATS.into_iter().flat_map(|from| INTEGERS.map(|to| (from, to))) {
        let (least, greatest) = range(to);
        let top = held(from, greatest as f64).into_iter().map(|x| x as i128);
        let top = top.filter(|&x| x <= greatest).max().unwrap();
        let bottom = if from == Ty::F16 { least.max(-65_504) } else { least };
        for x in values {
            let expected = integer(to, (held(from, x)[0] as i128).clamp(bottom, top));
            assert_eq!(
                converted(from, to, &[float(from, x)]),
                [expected],
                "{x} from {from:?} to {to:?}"
            );
        }
        assert_eq!(
            converted(from, to, &[float(from, f64::NAN)]),
            [0],
            "NaN from {from:?} to {to:?}"
        );
    }
}

#[test]
fn floats_beyond_integers_by_hand() {
    for (from, x, to, expected) in [
        (Ty::F32, 1e20, Ty::I32, 2_147_483_520),
        (Ty::F32, -1e20, Ty::I32, -2_147_483_648),
        (Ty::F32, 1e20, Ty::U32, 4_294_967_040),
        (Ty::F32, 1e30, Ty::I64, 9_223_371_487_098_961_920),
        (Ty::F32, 1e20, Ty::I16, 32_767),
        (Ty::F64, 1e20, Ty::I32, 2_147_483_647),
        (Ty::F64, 1e30, Ty::U64, 18_446_744_073_709_549_568),
        (Ty::F16, f64::INFINITY, Ty::I32, 65_504),
        (Ty::F16, f64::NEG_INFINITY, Ty::I64, -65_504),
        (Ty::F16, f64::INFINITY, Ty::I16, 32_752),
        (Ty::F16, f64::NEG_INFINITY, Ty::I16, -32_768),
        (Ty::F16, f64::INFINITY, Ty::U16, 65_504),
        (Ty::F16, -2.0, Ty::U32, 0),
    ] {
        assert_eq!(
            converted(from, to, &[float(from, x)]),
            [integer(to, expected)],
            "{x} from {from:?} to {to:?}"
        );
    }
}

#[test]
fn integers_to_floats_are_nearest_even() {
    let edges = [
        0,
        1,
        -1,
        2047,
        2049,
        2051,
        65_503,
        65_519,
        65_520,
        65_521,
        (1 << 24) + 1,
        (1 << 24) + 3,
        (1 << 53) + 1,
        (1 << 54) + 3,
        i128::MAX,
    ];
    for (from, to) in INTEGERS.into_iter().flat_map(|from| FLOATS.map(|to| (from, to))) {
        let (least, greatest) = range(from);
        for x in edges.into_iter().flat_map(|x| [x, -x]).map(|x| x.clamp(least, greatest)) {
            let expected = match to {
                Ty::F16 => nearest(x as f64),
                Ty::F32 => u64::from((x as f32).to_bits()),
                _ => (x as f64).to_bits(),
            };
            assert_eq!(
                converted(from, to, &[integer(from, x)]),
                [expected],
                "{x} from {from:?} to {to:?}"
            );
        }
    }
}

#[test]
fn integers_to_integers_wrap() {
    let edges = [
        0,
        1,
        -1,
        0x7fff,
        0x8000,
        0xffff,
        0x1_0000,
        -0x8001,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        1 << 32,
        i128::from(i64::MIN),
        i128::from(u64::MAX),
    ];
    for (from, to) in INTEGERS.into_iter().flat_map(|from| INTEGERS.map(|to| (from, to))) {
        let (least, greatest) = range(from);
        for x in edges.into_iter().filter(|x| (least..=greatest).contains(x)) {
            assert_eq!(
                converted(from, to, &[integer(from, x)]),
                [integer(to, x)],
                "{x} from {from:?} to {to:?}"
            );
        }
    }
}

#[test]
fn every_f16_to_every_float() {
    let all: Vec<u64> = (0..=0xffff).collect();
    let (narrow, wide, same) = (
        converted(Ty::F16, Ty::F32, &all),
        converted(Ty::F16, Ty::F64, &all),
        converted(Ty::F16, Ty::F16, &all),
    );
    for (bits, ((narrow, wide), same)) in all.iter().zip(narrow.iter().zip(&wide).zip(&same)) {
        let x = ::half::f16::from_bits(*bits as u16);
        assert_same(Ty::F32, *narrow, u64::from(x.to_f32().to_bits()), bits);
        assert_same(Ty::F64, *wide, x.to_f64().to_bits(), bits);
        assert_same(Ty::F16, *same, *bits, bits);
    }
    assert_eq!(converted(Ty::F32, Ty::F16, &narrow)[..0x7c01], all[..0x7c01]);
    assert_eq!(converted(Ty::F64, Ty::F16, &wide)[0x8000..=0xfc00], all[0x8000..=0xfc00]);
}

#[test]
fn f64_to_f16_is_rounded_once() {
    // Just off a tie by less than f32 shows: rounding through f32 would take the tie's even side.
    let tie = 1.0 + 2.0_f64.powi(-11);
    assert_eq!(
        converted(
            Ty::F64,
            Ty::F16,
            &[tie, tie + 2.0_f64.powi(-40), tie - 2.0_f64.powi(-40)].map(f64::to_bits)
        ),
        [0x3c00, 0x3c01, 0x3c00]
    );
    let tie = 1.0 + 3.0 * 2.0_f64.powi(-11);
    assert_eq!(
        converted(
            Ty::F64,
            Ty::F16,
            &[tie, tie + 2.0_f64.powi(-40), tie - 2.0_f64.powi(-40)].map(f64::to_bits)
        ),
        [0x3c02, 0x3c02, 0x3c01]
    );
    for x in [
        1e300,
        -1e300,
        1e-300,
        -1e-300,
        65_520.0,
        65_519.999_999_999,
        2.0_f64.powi(-25),
        2.0_f64.powi(-25) * (1.0 + f64::EPSILON),
        f64::INFINITY,
        f64::NAN,
    ] {
        assert_same(Ty::F16, converted(Ty::F64, Ty::F16, &[x.to_bits()])[0], nearest(x), x);
    }
    for x in random().map(|x| f64::from_bits(x >> 12 | ((x & 0x1f) + 1005) << 52)).take(100_000) {
        assert_same(Ty::F16, converted(Ty::F64, Ty::F16, &[x.to_bits()])[0], nearest(x), x);
    }
}

#[test]
fn f64_and_f32() {
    for x in [0.1, 1e300, -1e-300, 1e-45, f64::NEG_INFINITY] {
        assert_eq!(converted(Ty::F64, Ty::F32, &[x.to_bits()]), [u64::from((x as f32).to_bits())]);
    }
    assert_eq!(
        converted(Ty::F32, Ty::F64, &[0x3dcc_cccd, 1]),
        [f64::from(0.1_f32).to_bits(), f64::from(1e-45_f32).to_bits()]
    );
    assert_eq!(converted(Ty::F32, Ty::F32, &[0x8000_0001]), [0x8000_0001]);
    assert_eq!(converted(Ty::F64, Ty::F64, &[0x8000_0000_0000_0001]), [0x8000_0000_0000_0001]);
}

#[test]
fn bools() {
    for ty in INTEGERS {
        assert_eq!(
            converted(ty, Ty::Bool, &[0, 1, 2, integer(ty, -1), integer(ty, 1 << (ty.bits() - 1))]),
            [0, 1, 1, 1, 1]
        );
        assert_eq!(converted(Ty::Bool, ty, &[0, 1]), [0, 1]);
    }
    for ty in FLOATS {
        let values = [0.0, -0.0, 1e-7, -3.0, f64::NAN, f64::INFINITY].map(|x| float(ty, x));
        assert_eq!(converted(ty, Ty::Bool, &values), [0, 0, 1, 1, 1, 1]);
        assert_eq!(converted(Ty::Bool, ty, &[0, 1]), [float(ty, 0.0), float(ty, 1.0)]);
    }
    assert_eq!(converted(Ty::U64, Ty::Bool, &[1 << 40]), [1]);
    assert_eq!(converted(Ty::Bool, Ty::Bool, &[0, 1]), [0, 1]);
}
