//! f32 and f64.

use super::*;

type Function = fn(f64) -> f64;

fn bits32(values: &[f32]) -> Vec<u64> {
    values.iter().map(|x| u64::from(x.to_bits())).collect()
}

fn bits64(values: &[f64]) -> Vec<u64> {
    values.iter().map(|x| x.to_bits()).collect()
}

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

const EDGES: [f32; 24] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.7,
    -3.7,
    0.1,
    1e-40,
    -1e-40,
    1e-45,
    f32::MIN_POSITIVE,
    f32::EPSILON,
    8_388_607.5,
    1e30,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

/// The edges and some without structure, as f32.
fn samples() -> Vec<f32> {
    EDGES.into_iter().chain(random().map(|x| f32::from_bits(x as u32)).take(200)).collect()
}

/// Checks that `f` gives the results of `narrow` for f32, and those of `wide` for f64.
fn check1(f: Unary, narrow: impl Fn(f32) -> f32, wide: impl Fn(f64) -> f64) {
    let narrow_in = samples();
    let wide_in: Vec<f64> = narrow_in.iter().map(|&x| f64::from(x) * 1.1).collect();
    for (&x, got) in narrow_in.iter().zip(apply1(f, Ty::F32, Ty::F32, &bits32(&narrow_in))) {
        assert_same(Ty::F32, got, u64::from(narrow(x).to_bits()), (f, x));
    }
    for (&x, got) in wide_in.iter().zip(apply1(f, Ty::F64, Ty::F64, &bits64(&wide_in))) {
        assert_same(Ty::F64, got, wide(x).to_bits(), (f, x));
    }
}

#[test]
fn exact_functions() {
    check1(Unary::Negate, |x| -x, |x| -x);
    check1(Unary::Abs, f32::abs, f64::abs);
    check1(Unary::Ceil, f32::ceil, f64::ceil);
    check1(Unary::Floor, f32::floor, f64::floor);
    check1(Unary::Round, f32::round_ties_even, f64::round_ties_even);
    check1(Unary::Trunc, f32::trunc, f64::trunc);
    check1(Unary::Fract, |x| x - x.floor(), |x| x - x.floor());
    check1(Unary::Sqrt, f32::sqrt, f64::sqrt);
    check1(
        Unary::Sign,
        |x| if x.is_nan() || x == 0.0 { 0.0 } else { x.signum() },
        |x| if x.is_nan() || x == 0.0 { 0.0 } else { x.signum() },
    );
    check1(Unary::InverseSqrt, |x| (1.0 / f64::from(x).sqrt()) as f32, |x| 1.0 / x.sqrt());
    check1(Unary::Radians, |x| x * 0.017_453_292, |x| x * 0.017_453_292_519_943_295);
    check1(Unary::Degrees, |x| x * 57.295_78, |x| x * 57.295_779_513_082_32);
}

#[test]
fn values_known_by_hand() {
    let given = |f, x: &[f32]| {
        apply1(f, Ty::F32, Ty::F32, &bits32(x)).into_iter().map(f32_of).collect::<Vec<_>>()
    };
    assert_eq!(
        given(Unary::Round, &[0.5, 1.5, 2.5, -0.5, -1.5, 0.499_999_97]),
        [0.0, 2.0, 2.0, -0.0, -2.0, 0.0]
    );
    assert_eq!(given(Unary::Fract, &[1.25, -1.25, -1e-30, 3.0]), [0.25, 0.75, 1.0, 0.0]);
    assert_eq!(
        given(Unary::Sign, &[3.0, -1e-45, 0.0, -0.0, f32::NAN, f32::NEG_INFINITY]),
        [1.0, -1.0, 0.0, 0.0, 0.0, -1.0]
    );
    assert_eq!(
        given(Unary::Saturate, &[-1.0, 0.25, 2.0, f32::NAN, f32::INFINITY]),
        [0.0, 0.25, 1.0, 0.0, 1.0]
    );
    assert_eq!(
        given(Unary::InverseSqrt, &[4.0, 0.0, f32::INFINITY, 2.0]),
        [0.5, f32::INFINITY, 0.0, 0.707_106_77]
    );
    assert_eq!(
        given(Unary::Exp2, &[0.0, -149.0, 10.0, 128.0, -200.0]),
        [1.0, 1e-45, 1024.0, f32::INFINITY, 0.0]
    );
    assert_eq!(given(Unary::Log2, &[8.0, 1e-45, 0.0]), [3.0, -149.0, f32::NEG_INFINITY]);
    assert_eq!(given(Unary::Exp, &[0.0, 1.0, f32::NEG_INFINITY]), [1.0, std::f32::consts::E, 0.0]);
    assert_eq!(given(Unary::Log, &[1.0, std::f32::consts::E]), [0.0, 0.999_999_94]);
    assert_eq!(given(Unary::Acos, &[1.0, -1.0]), [0.0, std::f32::consts::PI]);
    assert_eq!(given(Unary::Tanh, &[0.0, 20.0, -20.0]), [0.0, 1.0, -1.0]);
    let wide = bits64(&[-1.0, 0.25, 2.0, f64::NAN]);
    assert_eq!(apply1(Unary::Saturate, Ty::F64, Ty::F64, &wide), bits64(&[0.0, 0.25, 1.0, 0.0]));
    assert!(given(Unary::Sqrt, &[-1.0])[0].is_nan() && given(Unary::Log, &[-1.0])[0].is_nan());
    assert_eq!(
        given(Unary::QuantizeToF16, &[1.000_4, 1.000_6, 65520.0, 1e-9, -6e-8]),
        [1.0, 1.000_976_6, f32::INFINITY, 0.0, -5.960_464_5e-8]
    );
}

/// Checks identities between transcendental functions, within the few units that f32 arguments
/// leave.
#[test]
fn transcendental_functions() {
    let functions: [(Unary, Function); 16] = [
        (Unary::Exp, f64::exp),
        (Unary::Exp2, |x| (x * std::f64::consts::LN_2).exp()),
        (Unary::Log, |x| x.log2() * std::f64::consts::LN_2),
        (Unary::Log2, |x| x.ln() / std::f64::consts::LN_2),
        (Unary::Sin, |x| (x / 2.0).sin() * (x / 2.0).cos() * 2.0),
        (Unary::Cos, |x| 1.0 - 2.0 * (x / 2.0).sin().powi(2)),
        (Unary::Tan, |x| x.sin() / x.cos()),
        (Unary::Sinh, |x| (x.exp() - (-x).exp()) / 2.0),
        (Unary::Cosh, |x| (x.exp() + (-x).exp()) / 2.0),
        (Unary::Tanh, |x| x.sinh() / x.cosh()),
        (Unary::Asin, |x| (x / (1.0 - x * x).sqrt()).atan()),
        (Unary::Acos, |x| (1.0 - x * x).sqrt().atan2(x)),
        (Unary::Atan, |x| x.atan2(1.0)),
        (Unary::Asinh, |x| (x + (x * x + 1.0).sqrt()).ln()),
        (Unary::Acosh, |x| (x + (x * x - 1.0).sqrt()).ln()),
        (Unary::Atanh, |x| ((1.0 + x) / (1.0 - x)).ln() / 2.0),
    ];
    let x: Vec<f32> = (1..200).map(|k| k as f32 * 0.013_7).collect();
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    for (f, expected) in functions {
        let (narrow, wide) =
            (apply1(f, Ty::F32, Ty::F32, &bits32(&x)), apply1(f, Ty::F64, Ty::F64, &bits64(&wide)));
        for ((&x, narrow), wide) in x.iter().zip(narrow).zip(wide) {
            let (expected, wide) = (expected(f64::from(x)), f64::from_bits(wide));
            assert_eq!(expected.is_nan(), wide.is_nan(), "{f:?} {x}");
            assert!(
                expected.is_nan() || (wide - expected).abs() <= 1e-12 * expected.abs().max(1.0),
                "{f:?} {x}: {wide} {expected}"
            );
            assert_same(Ty::F32, narrow, u64::from((wide as f32).to_bits()), (f, x));
        }
    }
}

#[test]
fn arithmetic_is_rusts() {
    let (a, b) = pairs(&bits32(&samples()));
    let functions: [(Binary, Operation<f32>); 7] = [
        (Binary::Add, |x, y| x + y),
        (Binary::Subtract, |x, y| x - y),
        (Binary::Multiply, |x, y| x * y),
        (Binary::Divide, |x, y| x / y),
        (Binary::Modulo, |x, y| x - y * (x / y).trunc()),
        (Binary::Atan2, |x, y| f64::from(x).atan2(f64::from(y)) as f32),
        (Binary::Step, |edge, x| if edge.is_nan() || x.is_nan() || edge > x { 0.0 } else { 1.0 }),
    ];
    for (f, expected) in functions {
        for ((&x, &y), got) in a.iter().zip(&b).zip(apply2(f, [Ty::F32; 3], &a, &b)) {
            let (x, y) = (f32_of(x), f32_of(y));
            assert_same(Ty::F32, got, u64::from(expected(x, y).to_bits()), (f, x, y));
        }
    }
    let wide = |f, x: f64, y: f64| f64::from_bits(scalar(f, Ty::F64, x.to_bits(), y.to_bits()));
    assert_eq!(wide(Binary::Add, 0.1, 0.2), 0.1 + 0.2);
    assert_eq!(wide(Binary::Subtract, 0.1, 0.2), -0.1);
    assert_eq!(wide(Binary::Multiply, 0.1, 0.2), 0.1 * 0.2);
    assert_eq!(wide(Binary::Divide, 1.0, 3.0), 1.0 / 3.0);
    assert_eq!(wide(Binary::Modulo, -7.5, 2.0), -1.5);
    assert_eq!(wide(Binary::Max, f64::NAN, 2.0), 2.0);
    assert_eq!(wide(Binary::Min, 2.0, f64::NAN), 2.0);
    assert_eq!(wide(Binary::Pow, 2.0, 0.5), std::f64::consts::SQRT_2);
    assert_eq!(wide(Binary::Step, 1.0, 1.0), 1.0);
    assert_eq!(wide(Binary::Atan2, 1.0, 1.0), std::f64::consts::FRAC_PI_4);
}

#[test]
fn comparisons_with_nan_are_false_but_for_unequal() {
    let (a, b) = pairs(&bits32(&samples()));
    let functions: [(Binary, Relation<f32>); 6] = [
        (Binary::Equal, f32::eq),
        (Binary::NotEqual, f32::ne),
        (Binary::Less, f32::lt),
        (Binary::LessEqual, f32::le),
        (Binary::Greater, f32::gt),
        (Binary::GreaterEqual, f32::ge),
    ];
    for (f, expected) in functions {
        for ((&x, &y), got) in a.iter().zip(&b).zip(apply2(f, [Ty::F32, Ty::F32, Ty::Bool], &a, &b))
        {
            assert_same(Ty::Bool, got, u64::from(expected(&f32_of(x), &f32_of(y))), (f, x, y));
        }
        let (low, high, nan) = (bits64(&[-1.5]), bits64(&[2.5]), bits64(&[f64::NAN]));
        for (x, y) in [(&low, &high), (&high, &low), (&low, &low), (&low, &nan), (&nan, &nan)] {
            let expected = expected(&(f64::from_bits(x[0]) as f32), &(f64::from_bits(y[0]) as f32));
            assert_eq!(apply2(f, [Ty::F64, Ty::F64, Ty::Bool], x, y), [u64::from(expected)]);
            let half = |x: &[u64]| [super::half::nearest(f64::from_bits(x[0]))];
            assert_eq!(
                apply2(f, [Ty::F16, Ty::F16, Ty::Bool], &half(x), &half(y)),
                [u64::from(expected)]
            );
        }
    }
}

#[test]
fn least_and_greatest_prefer_numbers() {
    let given = |f, x: f32, y: f32| {
        f32_of(scalar(f, Ty::F32, u64::from(x.to_bits()), u64::from(y.to_bits())))
    };
    for (x, y, least, greatest) in [
        (1.0, 2.0, 1.0, 2.0),
        (2.0, 1.0, 1.0, 2.0),
        (f32::NAN, 1.0, 1.0, 1.0),
        (1.0, f32::NAN, 1.0, 1.0),
        (f32::NEG_INFINITY, f32::INFINITY, f32::NEG_INFINITY, f32::INFINITY),
        (-0.0, 1e-45, -0.0, 1e-45),
    ] {
        assert_eq!(given(Binary::Min, x, y).to_bits(), f32::to_bits(least), "{x} {y}");
        assert_eq!(given(Binary::Max, x, y).to_bits(), f32::to_bits(greatest), "{x} {y}");
    }
    assert!(
        given(Binary::Min, f32::NAN, f32::NAN).is_nan()
            && given(Binary::Max, f32::NAN, f32::NAN).is_nan()
    );
    // Zeros of both signs are equal, so the second is given, on every platform.
    assert_eq!(given(Binary::Min, -0.0, 0.0).to_bits(), 0);
    assert_eq!(given(Binary::Max, 0.0, -0.0).to_bits(), 1 << 31);
}

#[test]
fn powers_and_scalings() {
    let powers = |x: f32, y: f32| {
        f32_of(scalar(Binary::Pow, Ty::F32, u64::from(x.to_bits()), u64::from(y.to_bits())))
    };
    assert_eq!(
        [powers(2.0, 10.0), powers(9.0, 0.5), powers(0.0, 2.0), powers(2.0, -149.0)],
        [1024.0, 3.0, 0.0, 1e-45]
    );
    assert!(powers(-2.0, 2.0).is_nan());

    let half = |x: f32| u64::from(::half::f16::from_f32(x).to_bits());
    for (x, exponent, expected) in [
        (1.5_f32, 3, 12.0_f32),
        (1e-45, 149, 1.0),
        (1.0, -149, 1e-45),
        (1.0, -150, 0.0),
        (1.0, 128, f32::INFINITY),
        (f32::MAX, -277, 1e-45),
        (0.0, i32::MAX, 0.0),
        (1.0, i32::MIN, 0.0),
        (f32::INFINITY, i32::MIN, f32::INFINITY),
        (-1.0, i32::MAX, f32::NEG_INFINITY),
        // Three and a half least subnormals, to even.
        (7.0, -150, 6e-45),
    ] {
        let exponents = [u64::from(exponent as u32)];
        assert_eq!(
            apply2(Binary::Ldexp, [Ty::F32, Ty::I32, Ty::F32], &bits32(&[x]), &exponents),
            bits32(&[expected]),
            "{x} {exponent}"
        );
    }
    let scaled = |x: f64, exponent: i32| {
        f64::from_bits(
            apply2(
                Binary::Ldexp,
                [Ty::F64, Ty::I32, Ty::F64],
                &bits64(&[x]),
                &[u64::from(exponent as u32)],
            )[0],
        )
    };
    assert_eq!(
        [scaled(5e-324, 1074), scaled(1.0, -1074), scaled(1.0, -1075), scaled(1.5, 1023)],
        [1.0, 5e-324, 0.0, 1.5 * 2.0_f64.powi(1023)]
    );
    assert_eq!(
        [scaled(5e-324, 2097), scaled(f64::MAX, -2098), scaled(1.0, 1024)],
        [2.0_f64.powi(1023), 5e-324, f64::INFINITY]
    );
    // 1 + 2^-52 scaled to a half of the last subnormal: rounding twice would lose what lifts it
    // above the tie.
    assert_eq!(scaled(f64::from_bits(0x3ff0_0000_0000_0001), -1075), 5e-324);
    assert_eq!(scaled(f64::from_bits(0x3ff0_0000_0000_0001) * 2.0_f64.powi(-20), -1055), 5e-324);
    assert_eq!(
        apply2(
            Binary::Ldexp,
            [Ty::F16, Ty::I32, Ty::F16],
            &[half(1.0), half(3.0)],
            &[u64::from(-24_i32 as u32), 14]
        ),
        [1, half(49152.0)]
    );
}

#[test]
fn frexp_and_ldexp_are_inverse() {
    let values: Vec<f32> = samples().into_iter().filter(|x| x.is_finite()).collect();
    let wide: Vec<f64> =
        values.iter().map(|&x| f64::from(x).powi(7)).chain([5e-324, 1e-310]).collect();
    for (ty, values) in [(Ty::F32, bits32(&values)), (Ty::F64, bits64(&wide))] {
        let (fractions, exponents) = (
            apply1(Unary::FrexpFraction, ty, ty, &values),
            apply1(Unary::FrexpExponent, ty, Ty::I32, &values),
        );
        assert_eq!(
            apply2(Binary::Ldexp, [ty, Ty::I32, ty], &fractions, &exponents).len(),
            values.len()
        );
        for ((&x, &fraction), &exponent) in values.iter().zip(&fractions).zip(&exponents) {
            let magnitude =
                if ty == Ty::F32 { f64::from(f32_of(fraction)) } else { f64::from_bits(fraction) }
                    .abs();
            assert!(
                (0.5..1.0).contains(&magnitude)
                    || magnitude == 0.0 && exponent == 0
                    || magnitude.is_infinite(),
                "{x:#x}: {magnitude}"
            );
            assert_eq!(apply2(Binary::Ldexp, [ty, Ty::I32, ty], &[fraction], &[exponent]), [x]);
        }
    }
}

#[test]
fn classes() {
    let edges = bits32(&EDGES);
    let (nan, infinite) = (
        apply1(Unary::IsNan, Ty::F32, Ty::Bool, &edges),
        apply1(Unary::IsInf, Ty::F32, Ty::Bool, &edges),
    );
    assert_eq!(nan.iter().sum::<u64>(), 1);
    assert_eq!(nan[23], 1);
    assert_eq!(infinite.iter().sum::<u64>(), 2);
    assert_eq!(infinite[21..23], [1, 1]);
    assert_eq!(apply1(Unary::IsNan, Ty::F64, Ty::Bool, &bits64(&[f64::NAN, 1.0])), [1, 0]);
    assert_eq!(
        apply1(Unary::IsInf, Ty::F64, Ty::Bool, &bits64(&[f64::NAN, f64::INFINITY])),
        [0, 1]
    );
}

#[test]
fn fma_is_rounded_once() {
    // Exponents within a few of one another, so that sums cancel, tie and lose tails; then any bits
    // at all.
    let near = |x: u64| x as u32 & 0x81ff_ffff | 0x3e00_0000;
    let random: Vec<u64> = random()
        .enumerate()
        .map(|(k, x)| u64::from(if k % 2 == 0 { near(x) } else { x as u32 }))
        .take(900_000)
        .collect();
    let [a, b, c] = [0, 2, 4]
        .map(|k| random.chunks(6).flat_map(|six| [six[k], six[k + 1]]).collect::<Vec<_>>());
    for (((&x, &y), &z), got) in
        a.iter().zip(&b).zip(&c).zip(apply3(Ternary::Fma, [Ty::F32; 2], &a, &b, &c))
    {
        let (x, y, z) = (f32_of(x), f32_of(y), f32_of(z));
        assert_same(Ty::F32, got, u64::from(x.mul_add(y, z).to_bits()), ("fma", x, y, z));
    }
    let edges = bits32(&EDGES);
    for &z in &edges {
        let (a, b) = pairs(&edges);
        for ((&x, &y), got) in
            a.iter().zip(&b).zip(apply3(Ternary::Fma, [Ty::F32; 2], &a, &b, &vec![z; a.len()]))
        {
            let expected = f32_of(x).mul_add(f32_of(y), f32_of(z));
            assert_same(
                Ty::F32,
                got,
                u64::from(expected.to_bits()),
                ("fma", f32_of(x), f32_of(y), f32_of(z)),
            );
        }
    }
}

#[test]
fn fma_where_two_roundings_would_differ() {
    // The square of 1 + 2^-12 is a tie of f32; a term too small for f64 beside it decides.
    let x = 1.0 + 2.0_f32.powi(-12);
    let tie = 1.0 + 2.0_f32.powi(-11);
    let tiny = 2.0_f32.powi(-80);
    let given = |x: f32, y: f32, z: f32| {
        f32_of(apply3(Ternary::Fma, [Ty::F32; 2], &bits32(&[x]), &bits32(&[y]), &bits32(&[z]))[0])
    };
    assert_eq!(given(x, x, 0.0), tie);
    assert_eq!(given(x, x, tiny), tie.next_up());
    assert_eq!(given(x, x, -tiny), tie);
    assert_eq!(given(-x, x, -tiny), -tie.next_up());
    // Halves of the least subnormal, to even.
    let small = 2.0_f32.powi(-75);
    assert_eq!(given(small, small, 1e-45).to_bits(), 2);
    assert_eq!(given(small, small, 0.0).to_bits(), 0);
    assert_eq!(given(small, small.next_up(), 0.0).to_bits(), 1);
    assert_eq!(given(-small, small, 0.0).to_bits(), 1 << 31);
    assert_eq!(given(f32::MAX, f32::MAX, f32::NEG_INFINITY), f32::NEG_INFINITY);
    assert!(given(f32::INFINITY, 0.0, 1.0).is_nan());
    let wide =
        apply3(Ternary::Fma, [Ty::F64; 2], &bits64(&[0.1]), &bits64(&[10.0]), &bits64(&[-1.0]));
    assert_eq!(wide, bits64(&[2.0_f64.powi(-54)]));
}

#[test]
fn functions_of_three() {
    let given = |f, x: f32, y: f32, z: f32| {
        f32_of(apply3(f, [Ty::F32; 2], &bits32(&[x]), &bits32(&[y]), &bits32(&[z]))[0])
    };
    assert_eq!(given(Ternary::Clamp, 5.0, 1.0, 3.0), 3.0);
    assert_eq!(given(Ternary::Clamp, -5.0, 1.0, 3.0), 1.0);
    assert_eq!(given(Ternary::Clamp, 2.0, 3.0, 1.0), 1.0);
    assert_eq!(given(Ternary::Clamp, f32::NAN, 1.0, 3.0), 1.0);
    assert_eq!(given(Ternary::Mix, 2.0, 10.0, 0.25), 4.0);
    // x itself would be lost to the form x + t * (y - x).
    assert_eq!(given(Ternary::Mix, 1e30, 1.0, 1.0), 1.0);
    assert_eq!(given(Ternary::SmoothStep, 1.0, 3.0, 2.0), 0.5);
    assert_eq!(given(Ternary::SmoothStep, 0.0, 4.0, 1.0), 0.156_25);
    assert_eq!(given(Ternary::SmoothStep, 0.0, 1.0, 7.0), 1.0);
    assert_eq!(given(Ternary::SmoothStep, 0.0, 1.0, -7.0), 0.0);
    for (ty, numbers) in [
        (Ty::F16, [0x4000, 0x4900, 0x3400, 0x4400]),
        (Ty::F64, [2.0, 10.0, 0.25, 4.0].map(f64::to_bits)),
    ] {
        let [two, ten, quarter, four] = numbers;
        assert_eq!(apply3(Ternary::Mix, [ty; 2], &[two], &[ten], &[quarter]), [four]);
        assert_eq!(apply3(Ternary::Clamp, [ty; 2], &[ten], &[two], &[four]), [four]);
        assert_eq!(
            apply3(Ternary::SmoothStep, [ty; 2], &[two], &[four], &[ten])[0],
            if ty == Ty::F16 { 0x3c00 } else { 1.0_f64.to_bits() }
        );
    }
}
