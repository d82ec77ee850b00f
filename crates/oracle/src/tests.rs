//! Hand-checked products, and kernels in plain f32 that the bound must admit or catch.

mod precisions;

use super::*;
use moe::Choice;
use tilewise::moe::Scoring;
use tilewise_core::Grouping;
use tilewise_core::problem::{Activation, Bias, Epilogue, Gathered, Precision};

/// Numbers in [-1, 1), the same in every run (the generator of Knuth's MMIX).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f64 / f64::from(1u32 << 23) - 1.0
    }

    fn vec(&mut self, dtype: DType, len: usize) -> Vec<f64> {
        (0..len).map(|_| f64::from(convert::round(dtype, self.next() as f32))).collect()
    }
}

fn inputs<'a>(a: &'a [f64], b: &'a [f64], c: &'a [f64]) -> Inputs<'a> {
    Inputs { a, b, c, ..Inputs::default() }
}

/// The f32 sum of products, one after the other.
fn f32_dot(a: &[f64], b: &[f64]) -> f32 {
    a.iter().zip(b).fold(0f32, |sum, (a, b)| sum + *a as f32 * *b as f32)
}

const F32: Format = Format::Dense(DType::F32);

#[test]
fn all_four_layouts() {
    let product = [58.0, 64.0, 139.0, 154.0];
    let (a, at) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let (b, bt) = ([7.0, 8.0, 9.0, 10.0, 11.0, 12.0], [7.0, 9.0, 11.0, 8.0, 10.0, 12.0]);
    for (transpose_a, transpose_b) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut problem = Problem::dense(DType::F32, 2, 2, 3);
        if transpose_a {
            problem.a = Operand::packed(F32, 1, 3, 2).t();
        }
        if transpose_b {
            problem.b = Operand::packed(F32, 1, 2, 3).t();
        }
        let given =
            inputs(if transpose_a { &at } else { &a }, if transpose_b { &bt } else { &b }, &[]);
        let result = reference(&problem, &given);
        assert_eq!(result.value, product, "{}", problem.layout());
        assert_eq!(result.check(&product, DType::F32), Ok(0.0));
        assert!(result.bound.iter().all(|&b| b > 0.0 && b < 1e-3), "{:?}", result.bound);
    }
}

#[test]
fn offsets_strides_batches_and_broadcast() {
    let mut problem = Problem::dense(DType::F32, 1, 2, 2);
    problem.batch = 2;
    problem.a = Operand { offset: 1, batch_stride: 3, len: 6, ..problem.a };
    problem.b = Operand { offset: 1, ld: 3, batch_stride: 0, len: 6, ..problem.b };
    problem.c = Operand { offset: 2, ld: 9, batch_stride: 4, len: 9, ..problem.c };
    let x = f64::NAN; // stands where nothing may be read
    let (a, b) = ([x, 1.0, 2.0, x, 3.0, 4.0], [x, 10.0, 20.0, x, 30.0, 40.0]);
    let old = [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0, x];
    let result = reference(&problem, &inputs(&a, &b, &old));
    let expected = [-1.0, -2.0, 70.0, 100.0, -5.0, -6.0, 150.0, 220.0, x];
    assert_eq!(result.check(&expected, DType::F32), Ok(0.0));
    assert_eq!(result.written, [false, false, true, true, false, false, true, true, false]);
    assert!(
        result.written.iter().zip(&result.bound).all(|(&written, &bound)| written == (bound > 0.0))
    );

    for (index, wrong) in [(0, -1.5), (8, 0.0), (2, 70.1), (3, x), (6, f64::INFINITY)] {
        let mut computed = expected;
        computed[index] = wrong;
        assert_eq!(result.check(&computed, DType::F32).unwrap_err().index, index);
    }
}

#[test]
fn ragged_rows_meet_their_group() {
    let mut problem = Problem::dense(DType::F32, 5, 1, 1);
    problem.grouping = Grouping::RaggedM { groups: 3, first: 0, offset: 0, expected: None };
    problem.b = Operand::packed(F32, 3, 1, 1);
    let bias = Operand { batch_stride: 1, ..Operand::packed(F32, 3, 1, 1) };
    problem.epilogue.bias = Some(Bias { axis: Axis::N, operand: bias });
    let (a, b, old) = ([1.0, 2.0, 3.0, 4.0, 5.0], [10.0, 100.0, 1000.0], [-1.0; 5]);
    for (offsets, expected) in [
        ([2, 2, 4], [10.5, 20.5, 3000.25, 4000.25, -1.0]),
        ([0, 3, 5], [100.125, 200.125, 300.125, 4000.25, 5000.25]),
        // Ends that decrease or exceed M are clamped.
        ([3, 1, 9], [10.5, 20.5, 30.5, 4000.25, 5000.25]),
        ([9, 9, 9], [10.5, 20.5, 30.5, 40.5, 50.5]),
        ([0, 0, 0], old),
    ] {
        let given =
            Inputs { offsets: &offsets, bias: Some(&[0.5, 0.125, 0.25]), ..inputs(&a, &b, &old) };
        let result = reference(&problem, &given);
        assert_eq!(result.value, expected, "{offsets:?}");
        assert_eq!(result.written, expected.map(|v| v != -1.0), "{offsets:?}");
    }
}

#[test]
fn epilogue_in_its_order() {
    let mut problem = Problem::dense(DType::F32, 2, 2, 1);
    let residual = Operand { ld: 2, ..Operand::packed(F32, 1, 2, 2).t() };
    let bias = |axis| {
        Some(Bias { axis, operand: Operand { offset: 1, ld: 2, ..Operand::packed(F32, 1, 1, 4) } })
    };
    problem.epilogue = Epilogue {
        alpha: 2.0,
        beta: -3.0,
        bias: bias(Axis::N),
        activation: Activation::Relu,
        residual: Some(residual),
        gated: false,
    };
    let given = Inputs {
        bias: Some(&[f64::NAN, 1.0, f64::NAN, 2.0]),
        residual: Some(&[100.0, 200.0, 300.0, 400.0]),
        ..inputs(&[1.0, 2.0], &[3.0, 4.0], &[1.0, 2.0, 3.0, 4.0])
    };
    // relu(2·[3 4; 6 8] − 3·[1 2; 3 4] + bias) + [100 300; 200 400]
    assert_eq!(reference(&problem, &given).value, [104.0, 304.0, 204.0, 406.0]);
    problem.epilogue.bias = bias(Axis::M);
    assert_eq!(reference(&problem, &given).value, [104.0, 303.0, 205.0, 406.0]);
    problem.epilogue.alpha = -2.0;
    assert_eq!(reference(&problem, &given).value, [100.0, 300.0, 200.0, 400.0]);
    problem.epilogue.gated = true;
    let gates = Inputs { residual: Some(&[1.0, -1.0, 0.5, 10.0]), ..given };
    // (−2·[3 4; 6 8] − 3·[1 2; 3 4] + [1; 2]) ∘ relu([1 0.5; −1 10])
    assert_eq!(reference(&problem, &gates).value, [-8.0, -6.5, 0.0, -260.0]);
}

#[test]
fn rows_by_index() {
    let gathered = Some(Gathered { rows: 2, offset: 1, step: 2, len: 8 });
    let problem = Problem { gathered, ..Problem::dense(DType::F32, 4, 1, 1) };
    let indices = &[9, 1, 9, 0, 9, 2, 9, 1];
    let given = Inputs { indices, ..inputs(&[3.0, 5.0], &[2.0], &[]) };
    assert_eq!(reference(&problem, &given).value, [10.0, 6.0, 0.0, 10.0]);
    let last = problem.range(Dimension::M, 3..4);
    assert_eq!(reference(&last, &given).value[3], 10.0);
}

#[test]
fn beta_zero_never_reads_c_and_k_zero_gives_zero() {
    let mut problem = Problem::dense(DType::F16, 1, 2, 0);
    let nan = [f64::NAN; 2];
    let result = reference(&problem, &inputs(&[], &[], &nan));
    assert_eq!(result.value, [0.0; 2]);
    assert_eq!(result.check(&[0.0; 2], DType::F16), Ok(0.0));
    assert_eq!(
        result
            .check(&[0.0, f64::from(half::f16::MIN_POSITIVE_SUBNORMAL)], DType::F16)
            .unwrap_err()
            .index,
        1
    );
    problem.epilogue.beta = 0.5;
    assert_eq!(reference(&problem, &inputs(&[], &[], &[3.0, 5.0])).value, [1.5, 2.5]);
    assert!(reference(&problem, &inputs(&[], &[], &nan)).value.iter().all(|v| v.is_nan()));
    for (m, n) in [(0, 3), (3, 0)] {
        let problem = Problem::dense(DType::F32, m, n, 4);
        assert!(reference(&problem, &inputs(&[0.0; 12], &[0.0; 12], &[])).value.is_empty());
    }
}

#[test]
fn activations_and_their_slopes() {
    assert!((silu(1.0) - 0.731_058_578_630_004_9).abs() < 1e-15);
    assert!((silu(-1.0) + 0.268_941_421_369_995_1).abs() < 1e-15);
    assert!((tanh_gelu(1.0) - 0.841_191_990_608_276_8).abs() < 1e-15);
    assert!((tanh_gelu(-1.0) + 0.158_808_009_391_723_24).abs() < 1e-15);
    assert_eq!(
        (tanh_gelu(1e30), tanh_gelu(-1e30), silu(-1e30), silu(1e30)),
        (1e30, 0.0, 0.0, 1e30)
    );
    // Φ from tables.
    for (x, phi) in [
        (1.0, 0.841_344_746_068_542_9),
        (-1.0, 0.158_655_253_931_457_05),
        (-4.0, 3.167_124_183_311_992e-5),
        (-5.0, 2.866_515_718_791_939e-7),
    ] {
        assert!((erf_gelu(x) / (x * phi) - 1.0).abs() < 1e-9, "{x}: {}", erf_gelu(x));
    }
    assert_eq!((erf_gelu(1e30), erf_gelu(-1e30), erf_gelu(0.0)), (1e30, 0.0, 0.0));
    let functions = [(silu as fn(f64) -> f64, 1.1), (tanh_gelu, 1.13), (erf_gelu, 1.13)];
    for (f, lipschitz) in functions {
        let slope = |i: i32| (f(f64::from(i + 1) / 1e3) - f(f64::from(i) / 1e3)).abs() * 1e3;
        let steepest = (-20_000..20_000).map(slope).fold(0.0, f64::max);
        assert!(steepest < lipschitz && steepest > lipschitz - 0.01, "{steepest}");
    }
}

/// Results of DeepSeek's and OpenAI's formulas, computed by NumPy.
#[test]
fn routers_by_groups_and_the_gate_of_gpt_oss() {
    let logits = [0.3, -1.2, 2.1, 0.4, -0.7, 1.9, 0.1, 0.8];
    let bias = [0.1, 0.9, -0.6, 0.2, 0.5, -0.2, 0.3, 0.05];
    let v2 = Choice {
        k: 3,
        scoring: Scoring::Softmax,
        normalize: false,
        scale: 16.0,
        bias: None,
        groups: [4, 2],
    };
    let v3 =
        Choice { scoring: Scoring::Sigmoid, normalize: true, scale: 2.5, bias: Some(&bias), ..v2 };
    for (choice, wanted) in [
        (v2, [(2, 5.98741116), (5, 4.90207765), (3, 1.09380137)]),
        (v3, [(1, 0.40008053), (6, 0.90737124), (7, 1.19254823)]),
    ] {
        for ((expert, weight, _), wanted) in choice.run(&logits).into_iter().zip(wanted) {
            assert!(expert == wanted.0 && (weight - wanted.1).abs() < 1e-8, "{expert} {weight}");
        }
    }
    for (gate, up, wanted) in
        [(1.5, -2.0, -1.391662198447), (9.0, 8.0, 55.999625026427), (-3.0, -9.0, 0.108427858247)]
    {
        assert!((swiglu_oai(gate, up, [1.702, 7.0]).0 - wanted).abs() < 1e-12);
    }
}

/// The formulas a kernel may use, in f32.
#[test]
fn the_bound_admits_activations_in_f32() {
    let gelu_tanh = |x: f32| {
        let t = 0.797_884_6 * (x + 0.044_715 * x * x * x);
        0.5 * x * (1.0 + t.clamp(-15.0, 15.0).tanh())
    };
    let gelu_logistic = |x: f32| x / (1.0 + (-1.595_769_2 * (x + 0.044_715 * x * x * x)).exp());
    let silu = |x: f32| x / (1.0 + (-x).exp());
    let forms = [
        (Activation::Gelu, gelu_tanh as fn(f32) -> f32),
        (Activation::Gelu, gelu_logistic),
        (Activation::Silu, silu),
        (Activation::GeluErf, |x| Activation::GeluErf.apply(x)),
    ];
    let xs: Vec<f64> = (-1200..1200).map(|i| f64::from(i as f32 / 10.0)).collect();
    for (activation, form) in forms {
        let mut problem = Problem::dense(DType::F32, xs.len() as u64, 1, 1);
        problem.epilogue.activation = activation;
        let result = reference(&problem, &inputs(&xs, &[1.0], &[]));
        let computed: Vec<f64> = xs.iter().map(|&x| f64::from(form(x as f32))).collect();
        result.check(&computed, DType::F32).unwrap();
        // The bound is still far below the difference between the two functions.
        let swapped = if activation == Activation::Silu { gelu_tanh } else { silu };
        let wrong: Vec<f64> = xs.iter().map(|&x| f64::from(swapped(x as f32))).collect();
        result.check(&wrong, DType::F32).unwrap_err();
    }
}

#[test]
fn the_bound_admits_f32_sums_and_catches_a_dropped_term() {
    let mut random = Random(1);
    for (dtype, k) in
        [1, 2, 3, 7, 33, 64, 65, 200, 512].into_iter().flat_map(|k| DType::FLOATS.map(|d| (d, k)))
    {
        let (m, n) = (3, 5);
        let mut problem = Problem::dense(dtype, m as u64, n as u64, k as u64);
        problem.b = Operand::packed(Format::Dense(dtype), 1, n as u64, k as u64).t();
        let (a, b) = (random.vec(dtype, m * k), random.vec(dtype, n * k));
        let result = reference(&problem, &inputs(&a, &b, &[]));
        let line = |values: &[f64], i: usize| values[i * k..(i + 1) * k].to_vec();
        let stored = |x: f32| f64::from(convert::round(dtype, x));
        let kernel: Vec<f64> =
            (0..m * n).map(|i| stored(f32_dot(&line(&a, i / n), &line(&b, i % n)))).collect();
        result.check(&kernel, dtype).unwrap_or_else(|e| panic!("{dtype} K = {k}: {e}"));

        // Every term that is not small beside the rounding to the output's type must be missed when
        // it is dropped.
        let threshold = if dtype == DType::BF16 { 0.3 } else { 0.1 };
        let mut caught = 0;
        for (i, dropped) in (0..m * n).flat_map(|i| (0..k).map(move |j| (i, j))) {
            let (x, mut y) = (line(&a, i / n), line(&b, i % n));
            if (x[dropped] * y[dropped]).abs() < threshold {
                continue;
            }
            y[dropped] = 0.0;
            let mut wrong = kernel.clone();
            wrong[i] = stored(f32_dot(&x, &y));
            assert_eq!(
                result.check(&wrong, dtype).unwrap_err().index,
                i,
                "{dtype} K = {k}, term {dropped}"
            );
            caught += 1;
        }
        assert!(caught > 0 || k < 7, "{dtype} K = {k}");
    }
}

/// Long sums, in three orders; sums of equal terms drift by far more than √K roundings.
#[test]
fn the_bound_admits_long_sums_in_any_order() {
    let mut random = Random(2);
    for k in [4096usize, 100_000] {
        let positive: Vec<f64> = random.vec(DType::F32, k).iter().map(|x| x.abs()).collect();
        for (a, b) in [
            (random.vec(DType::F32, k), random.vec(DType::F32, k)),
            (positive.clone(), positive),
            (vec![f64::from(0.1f32); k], vec![f64::from(0.1f32); k]),
            (vec![f64::from(0.7f32); k], vec![1.0; k]),
        ] {
            let result =
                reference(&Problem::dense(DType::F32, 1, 1, k as u64), &inputs(&a, &b, &[]));
            let halves = |(x, y): (f32, f32)| x + y;
            let (a0, b0) = (&a[..k / 2], &b[..k / 2]);
            let fused =
                a.iter().zip(&b).fold(0f32, |sum, (a, b)| (*a as f32).mul_add(*b as f32, sum));
            for computed in [
                f32_dot(&a, &b),
                fused,
                halves((f32_dot(a0, b0), f32_dot(&a[k / 2..], &b[k / 2..]))),
            ] {
                result.check(&[f64::from(computed)], DType::F32).unwrap();
            }
        }
    }
}

#[test]
fn large_products_are_shared_among_threads_and_tiles() {
    let (m, n, k) = (67, 131, 257);
    let a: Vec<f64> = (0..m * k).map(|i| (i % 13) as f64 - 6.0).collect();
    let b: Vec<f64> = (0..k * n).map(|i| (i % 11) as f64 - 5.0).collect();
    let result =
        reference(&Problem::dense(DType::F32, m as u64, n as u64, k as u64), &inputs(&a, &b, &[]));
    for i in 0..m * n {
        let expected: f64 = (0..k).map(|j| a[i / n * k + j] * b[j * n + i % n]).sum();
        assert_eq!(result.value[i], expected, "element {i}");
    }
}

#[test]
fn admitted_errors_of_b_widen_the_bound() {
    let problem = Problem::dense(DType::F32, 1, 1, 2);
    let exact = inputs(&[2.0, -3.0], &[1.0, 1.0], &[]);
    let bound = |given: &Inputs<'_>| reference(&problem, given).bound[0];
    let widened = bound(&Inputs { b_error: Some(&[0.25, 0.125]), ..exact }) - bound(&exact);
    assert!((widened - (2.0 * 0.25 + 3.0 * 0.125)).abs() < 1e-5, "{widened}");
}

/// An infinite product decides the sum, unless the finite ones overflow to the other side, or an
/// error is admitted that is infinite.
#[test]
fn infinite_products() {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    let problem = Problem::dense(DType::F32, 1, 1, 4);
    for (a, b, error, right, wrong) in [
        ([1.0; 4], [-INF, 1e38, 1e38, 1.0], 0.0, &[-INF][..], &[NAN, INF, 0.0, -3e38][..]),
        ([1.0; 4], [-INF, 2e38, 2e38, 1.0], 0.0, &[-INF, NAN], &[]),
        // All four products have an error, the infinite one included.
        ([1.0; 4], [-INF, 1e38, 1e38, 1.0], 1e30, &[-INF], &[NAN, INF, 0.0]),
        ([1.0; 4], [-INF, 1e38, 1e38, 1.0], 2e38, &[-INF, NAN], &[]),
        ([1e-6; 4], [INF, 1.0, 1.0, 1.0], INF, &[INF, NAN, 1e30], &[]),
        ([0.0; 4], [INF, 1.0, 1.0, 1.0], INF, &[0.0, NAN], &[]),
        ([0.0; 4], [INF, 1.0, 1.0, 1.0], 1.0, &[NAN], &[0.0, INF]),
        // Both infinities are NaN, whatever else there is.
        ([1.0; 4], [-INF, INF, 2e38, 2e38], 0.0, &[NAN], &[-INF, INF, 0.0]),
        ([INF, 1.0, 1.0, 1.0], [1.0; 4], 0.5, &[INF], &[NAN, -INF, 1e30]),
    ] {
        let result =
            reference(&problem, &Inputs { b_error: Some(&[error; 4]), ..inputs(&a, &b, &[]) });
        let admits = |computed: f64| result.check(&[computed], DType::F32).is_ok();
        assert!(right.iter().all(|&computed| admits(computed)), "{a:?} {b:?} {error}: {right:?}");
        assert!(!wrong.iter().any(|&computed| admits(computed)), "{a:?} {b:?} {error}: {wrong:?}");
    }
}

#[test]
fn subnormals_may_be_flushed() {
    let mut problem = Problem::dense(DType::F16, 1, 1, 2);
    let small = 2f64.powi(-20);
    let result = reference(&problem, &inputs(&[small, 1.0], &[4096.0, 1.0], &[]));
    assert!(result.check(&[1.0], DType::F16).unwrap() > 0.8);
    assert_eq!(result.check(&[1.0 + 2f64.powi(-8)], DType::F16), Ok(0.0));
    result.check(&[0.9], DType::F16).unwrap_err();
    // In f32 the same number is normal.
    problem.a.format = F32;
    reference(&problem, &inputs(&[small, 1.0], &[4096.0, 1.0], &[]))
        .check(&[1.0], DType::F16)
        .unwrap_err();
    // A result that is subnormal in the output's type.
    let result = reference(
        &Problem::dense(DType::F16, 1, 1, 1),
        &inputs(&[2f64.powi(-10)], &[2f64.powi(-10)], &[]),
    );
    result.check(&[0.0], DType::F16).unwrap();
    result.check(&[2f64.powi(-13)], DType::F16).unwrap_err();
}

#[test]
fn ends_of_the_range() {
    let check = |dtype, a: f64, b: f64, computed: f64| {
        reference(&Problem::dense(dtype, 1, 1, 1), &inputs(&[a], &[b], &[]))
            .check(&[computed], dtype)
    };
    let infinity = f64::INFINITY;
    for (sign, infinity) in [(1.0, infinity), (-1.0, -infinity)] {
        check(DType::F16, 256.0, sign * 256.0, infinity).unwrap();
        check(DType::F16, 256.0, sign * 256.0, sign * 65504.0).unwrap();
        check(DType::F16, 256.0, sign * 256.0, -infinity).unwrap_err();
        check(DType::F16, 256.0, sign * 256.0, f64::NAN).unwrap_err();
        check(DType::F16, 2047.0, sign * 32.0, infinity).unwrap_err();
        check(DType::BF16, 2f64.powi(127), sign * 1.999, infinity).unwrap();
        check(DType::BF16, 2f64.powi(127), sign, infinity).unwrap_err();
        check(DType::F32, 2f64.powi(127), sign, infinity).unwrap_err();
        check(DType::F32, infinity, 2.0, infinity).unwrap();
        check(DType::F32, infinity, -2.0, infinity).unwrap_err();
        check(DType::F32, infinity, 2.0, 1.0).unwrap_err();
    }
    // Beyond the range of the f32 accumulator nothing is promised.
    check(DType::F32, 2f64.powi(127), 4.0, f64::NAN).unwrap();
    check(DType::F32, infinity, 0.0, f64::NAN).unwrap();
    check(DType::F32, f64::NAN, 0.0, 0.0).unwrap_err();
    assert!(check(DType::F32, 1.0, 3.0, 4.0).unwrap_err().to_string().contains("expected 3e0"));
}

#[test]
fn missing_and_surplus_elements_are_mismatches() {
    let result = reference(&Problem::dense(DType::F32, 1, 2, 1), &inputs(&[1.0], &[2.0, 3.0], &[]));
    assert_eq!(result.check(&[2.0, 3.0], DType::F32), Ok(0.0));
    assert_eq!(result.check(&[2.0], DType::F32).unwrap_err().index, 1);
    assert_eq!(result.check(&[2.0, 3.0, 0.0], DType::F32).unwrap_err().index, 2);
}
