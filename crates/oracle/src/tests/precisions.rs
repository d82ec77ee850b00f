//! Bounds that permissions and narrow types widen.

use super::*;

/// Sums in f16, one rounding per product: within the bound if they are permitted, else
/// outside it.
#[test]
fn sums_in_f16() {
    let precisions = [Precision::F32, Precision::F16Sums];
    let (m, n, k) = (4, 4, 300);
    let mut random = Random(5);
    let [a, b] = [m * k, k * n]
        .map(|len| random.vec(DType::F16, len).iter().map(|x| x.abs()).collect::<Vec<_>>());
    let half = |value: f64| convert::round_f64(DType::F16, value);
    let sum =
        |i: usize| (0..k).fold(0.0, |sum, l| half(sum + half(a[i / n * k + l] * b[l * n + i % n])));
    let computed: Vec<f64> = (0..m * n).map(sum).collect();
    let strict = Problem {
        c: Operand::packed(F32, 1, 4, 4),
        ..Problem::dense(DType::F16, m as u64, n as u64, k as u64)
    };
    let permitted = Problem { precision: Precision::F16Sums, ..strict };
    let given = inputs(&a, &b, &[]);
    let worst = reference(&permitted, &given).check(&computed, DType::F32).unwrap();
    assert!(worst > 0.01, "the bound is {} times the error", 1.0 / worst);
    reference(&strict, &given).check(&computed, DType::F32).unwrap_err();
    // The permission concerns products of f16 alone.
    let mixed = |problem: Problem| Problem { b: Operand { format: F32, ..problem.b }, ..problem };
    assert_eq!(reference(&mixed(permitted), &given), reference(&mixed(strict), &given));
    assert!(reference(&permitted, &given).bound[0] > 1e3 * reference(&strict, &given).bound[0]);

    // Equal terms: from 2048 on, a one more is rounded away.
    let ones = |k: u64| {
        let problem =
            Problem { c: Operand::packed(F32, 1, 1, 1), ..Problem::dense(DType::F16, 1, 1, k) };
        let ones = vec![1.0; k as usize];
        let given = inputs(&ones, &ones, &[]);
        precisions.map(|precision| {
            reference(&Problem { precision, ..problem }, &given)
                .check(&[2048.0], DType::F32)
                .is_ok()
        })
    };
    assert_eq!((ones(2048), ones(4000)), ([true, true], [false, true]));

    // Beyond the range of an f16 sum nothing is promised, whatever alpha makes of it.
    let square = |x: f64, computed: f64, precision| {
        let mut problem = Problem { precision, ..Problem::dense(DType::F16, 1, 1, 1) };
        problem.epilogue.alpha = 1.0 / 256.0;
        reference(&problem, &inputs(&[x], &[x], &[])).check(&[computed], DType::F16).is_ok()
    };
    assert_eq!(precisions.map(|precision| square(256.0, f64::INFINITY, precision)), [false, true]);
    assert_eq!(precisions.map(|precision| square(128.0, f64::INFINITY, precision)), [false, false]);
    assert_eq!(precisions.map(|precision| square(256.0, 256.0, precision)), [true, true]);
}

/// The bound admits the loss of an activation rounded to whole numbers of the permitted bytes, and
/// no more: the loss that the problem states.
#[test]
fn activations_in_bytes() {
    let format = Format::Quantized(tilewise_core::quant::QuantFormat::Q8_0);
    let problem = Problem {
        b: Operand::packed(format, 1, 1, 32).t(),
        ..Problem::dense(DType::F32, 1, 1, 32)
    };
    let precisions = [Precision::Int8Activations, Precision::Int16Activations, Precision::F32];
    let off = |precision, small: f64, by: f64| {
        let (mut a, mut b) = ([0.0; 32], [0.0; 32]);
        (a[0], a[1], b[1]) = (1.5, small, 1.0);
        reference(&Problem { precision, ..problem }, &inputs(&a, &b, &[]))
            .check(&[small + by], DType::F32)
            .is_ok()
    };
    for (i, precision) in precisions.into_iter().enumerate() {
        let bytes = i as i32 + 1;
        // Half of a step below 2^0, which is lost.
        let half = 2f64.powi(1 - 8 * bytes);
        assert_eq!(
            [1.0, 1.1].map(|by| off(precision, half, -by * half)),
            [true, false],
            "{precision:?}"
        );
        assert!(precisions[..i].iter().all(|&fewer| off(fewer, half, -half)), "{precision:?}");
        assert!(!precisions[i + 1..].iter().any(|&more| off(more, half, -half)), "{precision:?}");
    }
    let dense =
        Problem { precision: Precision::Int8Activations, ..Problem::dense(DType::F32, 1, 1, 2) };
    let given = inputs(&[1.5, 0.3], &[0.0, 1.0], &[]);
    assert_eq!(
        reference(&dense, &given),
        reference(&Problem { precision: Precision::F32, ..dense }, &given)
    );

    let mut random = Random(7);
    for precision in precisions {
        let problem = Problem { precision, ..problem };
        for _ in 0..1000 {
            let line = random.vec(DType::F32, 32);
            let mut errors = [0.0; 32];
            crate::product::admit_counting(problem.activation_bytes().unwrap(), &line, &mut errors);
            let largest = line.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            let most = errors.iter().fold(0.0, |most: f64, error| most.max(*error));
            assert!(
                most <= largest * problem.activation_error(),
                "{precision:?}: {most:e} of {largest:e}"
            );
        }
    }
}

/// The bound admits the loss of an f32 in two f16 terms if that is permitted, and no more: 2^-37 of
/// the power of two of the line's largest, or, of a large number, a share of itself.
#[test]
fn numbers_in_two_terms() {
    let problem =
        Problem { precision: Precision::SplitF32Fast, ..Problem::dense(DType::F32, 1, 1, 2) };
    let off = |small: f64, by: f64, precision| {
        let problem = Problem { precision, ..problem };
        reference(&problem, &inputs(&[1.5, small], &[0.0, 1.0], &[]))
            .check(&[small + by], DType::F32)
            .is_ok()
    };
    let (tiny, step) = (2f64.powi(-50), 2f64.powi(-37));
    assert_eq!([1.0, 0.9].map(|by| off(tiny, by * step, Precision::F32)), [false; 2]);
    for precision in [Precision::SplitF32, Precision::SplitF32Fast] {
        assert_eq!([1.1, 0.9].map(|by| off(tiny, by * step, precision)), [false, true]);
        // 2^-23 of each factor and 2^-22 of the product are 8, and sums of six products 7.
        assert_eq!(
            [16.0, 14.0].map(|by| off(0.75, 0.75 * by * 2f64.powi(-24), precision)),
            [false, true]
        );
    }
    let mixed =
        Problem { b: Operand { format: Format::Dense(DType::F16), ..problem.b }, ..problem };
    let strict = Problem { precision: Precision::F32, ..mixed };
    let given = inputs(&[1.5, 0.3], &[0.0, 1.0], &[]);
    assert_eq!(reference(&mixed, &given), reference(&strict, &given));
}

/// Parts below 2^-29 of a line's largest may be lost in bf16, and nothing else: beside f16
/// and bf16, not beside f32.
#[test]
fn lines_that_are_scaled() {
    let lost = |small: f64, b: DType| {
        let problem = Problem {
            b: Operand::packed(Format::Dense(b), 1, 2, 1),
            ..Problem::dense(DType::BF16, 1, 1, 2)
        };
        let problem = Problem { c: Operand::packed(F32, 1, 1, 1), ..problem };
        reference(&problem, &inputs(&[1.5, small], &[0.0, 1.0], &[]))
            .check(&[0.0], DType::F32)
            .is_ok()
    };
    let (edge, below) = (2f64.powi(-29), 1.9 * 2f64.powi(-30));
    assert_eq!([DType::BF16, DType::F16, DType::F32].map(|b| lost(below, b)), [true, true, false]);
    assert_eq!([DType::BF16, DType::F16, DType::F32].map(|b| lost(edge, b)), [false; 3]);
    assert!(lost(2f64.powi(-60), DType::BF16));
}
