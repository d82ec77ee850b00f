//! `tilewise quantize` and `tilewise qmatmul`.

use crate::bench::{Bench, adapters, assert_close, every_adapter, numbers, product, transposed};
use std::collections::BTreeMap;
use tilewise_core::quant::{Quantized, dequantize, quantize};
use tilewise_core::{DType, QuantFormat};
use tilewise_files::{Model, Output};

/// Weights that 4 bits represent exactly: in each group of 64, the numbers 0..15 times a power of
/// two.
fn exact_weights(n: usize, k: usize) -> Vec<f32> {
    (0..n * k).map(|at| (at * 7 % 16) as f32 * [0.25, 1.0, 4.0][at / 64 % 3]).collect()
}

#[test]
fn representable_weights_survive() {
    for adapter in adapters() {
        // Rows of 2048 have gaps between them on a device.
        for (m, n, k) in [(1, 1, 64), (3, 5, 192), (40, 70, 128), (2, 4, 2048)] {
            let (x, w) = (numbers(m * k, 1), exact_weights(n, k));
            let bench = Bench::new();
            bench.npy("x.npy", &[m, k], &x);
            bench.npy("w.npy", &[n, k], &w);
            let report = bench.succeed("quantize w.npy -o q.safetensors --check");
            assert!(report.contains("w.weight"), "{report}");
            assert!(report.contains("error    0.00%"), "{report}");
            let expected = product(&x, &transposed(&w, n, k), m, n, k);
            for weights in ["q.safetensors", "q.safetensors#w"] {
                bench.succeed(&format!(
                    "qmatmul x.npy {weights} -o y.npy --adapter {adapter} --check"
                ));
                let (shape, values) = bench.read_npy("y.npy");
                assert_eq!(shape, [m, n]);
                assert_close(&values, &expected, 1e-2);
            }
        }
    }
}

#[test]
fn arbitrary_weights_lose_little() {
    let (m, n, k) = (4, 33, 320);
    let (x, w) = (numbers(m * k, 1), numbers(n * k, 2));
    for adapter in adapters() {
        let bench = Bench::new();
        bench.npy("x.npy", &[m, k], &x);
        bench.npy("w.npy", &[n, k], &w);
        bench.succeed("quantize w.npy -o q.safetensors --prefix layers.0.w --check");
        bench.succeed(&format!(
            "qmatmul x.npy q.safetensors#layers.0.w -o y.npy --adapter {adapter} --check --kernel \
             naive"
        ));
        let fewer = "-o z.npy --check --precision int8-activations --kernel dot";
        let report = bench.succeed(&format!(
            "qmatmul x.npy q.safetensors#layers.0.w {fewer} --adapter {adapter}"
        ));
        // The executor has no whole numbers.
        let said = "precision int8-activations, as with precision f32";
        assert!(report.contains("precision int8-activations"), "{report}");
        assert_eq!(report.contains(said), adapter == "cpu", "{report}");
        let expected = product(&x, &transposed(&w, n, k), m, n, k);
        let norm =
            |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
        let found = bench.read_npy("y.npy").1;
        let error = norm(&mut found.iter().zip(&expected).map(|(f, e)| f - e))
            / norm(&mut expected.iter().copied());
        assert!((0.001..0.1).contains(&error), "relative error {error}");
    }
}

/// Rows are quantized in strips, with the bits of the whole matrix. This matrix has two strips.
#[test]
fn a_matrix_of_several_strips() {
    let bench = Bench::new();
    let (n, k, format) = (1030, 4096, QuantFormat::MXFP4);
    let mut weights = numbers(n * k, 1);
    bench.npy("w.npy", &[n, k], &weights);
    bench.succeed("quantize w.npy -o q.safetensors --format mxfp4 --check");
    let whole = quantize(&weights, n, k, format).unwrap();
    let model = Model::open(bench.path("q.safetensors")).unwrap();
    assert!(model.get("w").unwrap().quantized().unwrap() == whole);
    bench.succeed("dequantize q.safetensors -o d.npy");
    assert!(
        bench.read_npy("d.npy").1.iter().zip(dequantize(&whole)).all(|(d, w)| *d == f64::from(w))
    );
    // An error has the row's number in the matrix.
    weights[1028 * k + 7] = f32::NAN;
    bench.npy("w.npy", &[n, k], &weights);
    bench.refuses(
        "quantize w.npy -o n.safetensors --format mxfp4",
        &["w.npy: the weight in row 1028, column 7 is NaN"],
    );
}

/// A stack has the bits of its matrices, and is multiplied as a whole.
#[test]
fn a_stack_of_matrices() {
    let bench = Bench::new();
    let [e, n, k] = [3, 5, 96];
    let mut weights = numbers(e * n * k, 1);
    bench.npy("w.npy", &[e, n, k], &weights);
    bench.npy("x.npy", &[4, k], &numbers(4 * k, 2));
    bench.npy_bytes("ends.npy", "<u4", &[3], &[1u32, 1, 4].map(u32::to_le_bytes).concat());
    for format in ["mxfp4", "affine-4bit-g32-f16", "q8_0"] {
        let report =
            bench.succeed(&format!("quantize w.npy -o q.safetensors --format {format} --check"));
        assert!(report.contains("weights  [3,5,96] f32"), "{report}");
        let whole = quantize(&weights, e * n, k, format.parse().unwrap()).unwrap();
        let model = Model::open(bench.path("q.safetensors")).unwrap();
        let tensor = model.get("w").unwrap();
        assert_eq!(tensor.shape(), [e, n, k]);
        assert!(tensor.rows(0..e * n).unwrap() == whole, "{format}");
        bench.succeed(&format!(
            "grouped x.npy q.safetensors --format {format} --offsets ends.npy -o y.npy --check \
             --adapter cpu"
        ));
    }
    // An error counts rows of each matrix.
    weights[12 * k + 7] = f32::NAN;
    bench.npy("w.npy", &[e, n, k], &weights);
    bench.refuses(
        "quantize w.npy -o n.safetensors --format mxfp4",
        &["w.npy: matrix 2: the weight in row 2, column 7 is NaN"],
    );
    bench.npy("none.npy", &[0, 5, 64], &[]);
    bench.succeed("quantize none.npy -o none.safetensors --check");
}

/// Weights of a file, and sums, may be infinite in f32. The check knows which elements are
/// undefined then.
#[test]
fn weights_beyond_the_range() {
    let bench = Bench::new();
    let (n, k) = (8, 128);
    let random: Vec<u32> =
        (0..1024u32).map(|i| i.wrapping_mul(2_654_435_761).rotate_left(13)).collect();
    let words = |count: usize| {
        random[..count].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>()
    };
    let scales =
        |of: &dyn Fn(usize) -> f32| (0..16).flat_map(|i| of(i).to_le_bytes()).collect::<Vec<_>>();
    let some = |i: usize| if random[i].is_multiple_of(2) { 1e38 } else { 1e-3 };
    let affine = QuantFormat::affine(4, 64, DType::F32).unwrap();
    let exponents = random[..32].iter().map(|word| (250 + word % 5) as u8).collect();
    // The product of a scale and a code overflows. The weight may not, if a device fuses the
    // product with the bias.
    for (format, planes) in [
        (affine, vec![words(128), scales(&|_| 1e38), scales(&|_| -3e38)]),
        (affine, vec![words(128), scales(&|i| some(i)), scales(&|i| -3.0 * some(i))]),
        (QuantFormat::MXFP4, vec![words(128), exponents]),
    ] {
        let weights = Quantized::from_planes(format, n, k, planes).unwrap();
        assert!(dequantize(&weights).iter().any(|weight| weight.is_infinite()), "{format}");
        let outputs = vec![Output::quantized("w", &weights)];
        tilewise_files::write(
            bench.path("q.safetensors"),
            outputs,
            &BTreeMap::new(),
            &mut |_, _| {},
        )
        .unwrap();
        for factor in [1.0, 1e-6, 0.0] {
            let x: Vec<f32> = numbers(3 * k, 3).iter().map(|x| x * factor).collect();
            bench.npy("x.npy", &[3, k], &x);
            for adapter in every_adapter() {
                let line =
                    format!("qmatmul x.npy q.safetensors --format {format} -o y.npy --check");
                let report = bench.succeed(&format!("{line} --adapter {adapter}"));
                // Each weight of the first is infinite.
                assert!(
                    report.contains(" elements have no bound"),
                    "{format} times {factor}: {report}"
                );
            }
        }
    }
}

/// The check counts elements without a bound, whose sums overflow or are undefined. It claims no
/// more than it has compared.
#[test]
fn sums_without_a_bound_are_counted() {
    let bench = Bench::new();
    bench.npy("w.npy", &[4, 64], &[1.0; 256]);
    bench.succeed("quantize w.npy -o q.safetensors --format mxfp8");
    bench.safetensors("w.safetensors", &[("w", &[4, 64], &[1.0; 256])]);
    let why = "their sums overflow or are undefined";
    for (rows, expected) in [
        (
            &[1.0, 2.0, 3.0][..],
            "within the bound of the f64 oracle; the largest error is 0.000 of it\n".to_owned(),
        ),
        (&[1.0, f32::NAN, 3e38], format!("of it; 8 of 12 elements have no bound: {why}\n")),
        (&[f32::INFINITY, 1.0], format!("of it; 4 of 8 elements have no bound: {why}\n")),
        (&[3e38], format!("check    nothing is compared: all 4 elements have no bound, {why}\n")),
        (&[], "within the bound of the f64 oracle; the largest error is 0.000 of it\n".to_owned()),
    ] {
        let x: Vec<f32> = rows.iter().flat_map(|row| [*row; 64]).collect();
        bench.npy("x.npy", &[rows.len(), 64], &x);
        bench.npy("b.npy", &[64, 4], &[1.0; 256]);
        for line in
            ["qmatmul x.npy q.safetensors", "qmatmul x.npy w.safetensors", "matmul x.npy b.npy"]
        {
            for adapter in adapters() {
                let report = bench.succeed(&format!("{line} -o y.npy --check --adapter {adapter}"));
                assert!(report.contains(&expected), "{line} of {rows:?}: {report}");
            }
        }
    }
}

#[test]
fn bad_weights() {
    let bench = Bench::new();
    bench.npy("x.npy", &[2, 64], &numbers(128, 1));
    bench.npy("w.npy", &[2, 100], &numbers(200, 2));
    assert!(bench.fail(1, "quantize w.npy -o q.safetensors").contains("K = 100"));
    bench.npy("w.npy", &[128], &numbers(128, 2));
    assert!(bench.fail(1, "quantize w.npy -o q.safetensors").contains("[128]"));
    bench.npy("w.npy", &[1, 2, 1, 64], &numbers(128, 2));
    bench.refuses("quantize w.npy -o q.safetensors", &["[1,2,1,64]", "[N,K]", "[E,N,K]"]);
    bench.npy("w.npy", &[1, 64], &[f32::NAN; 64]);
    assert!(bench.fail(1, "quantize w.npy -o q.safetensors").contains("NaN"));
    assert!(
        bench.fail(2, "quantize w.npy -o q.npy").contains("the extension must be .safetensors\n")
    );
    assert!(bench.fail(2, "quantize w.npy -o q.safetensors#u --prefix v").contains("\"u\""));
    assert_eq!(bench.files(), ["w.npy", "x.npy"]);
    bench.npy("w.npy", &[2, 128], &numbers(256, 2));
    let report = bench.succeed("quantize w.npy -o q.safetensors");
    assert!(report.contains("size     160 bytes, 1024 before"), "{report}");
    let mismatch = bench.fail(1, "qmatmul x.npy q.safetensors -o y.npy --adapter cpu");
    assert!(mismatch.contains("64") && mismatch.contains("128"), "{mismatch}");
    let missing = bench.fail(1, "qmatmul x.npy q.safetensors#v -o y.npy --adapter cpu");
    assert!(missing.contains("no tensor is named \"v\"; the nearest of 1 is \"w\""), "{missing}");
    assert!(!bench.files().contains(&"y.npy".to_string()));
}

/// Stacks whose rows have gaps between them on a device, against the oracle.
#[test]
fn stacks_with_gaps() {
    let (groups, n, k) = (3, 5, 1024);
    for adapter in adapters() {
        let bench = Bench::new();
        bench.npy("x.npy", &[7, k], &numbers(7 * k, 1));
        bench.npy("entries.npy", &[groups, 4, k], &numbers(groups * 4 * k, 2));
        bench.npy("w.npy", &[groups, n, k], &numbers(groups * n * k, 3));
        for (name, ends) in [("ends.npy", [2u32, 2, 7]), ("counts.npy", [4, 0, 1])] {
            let bytes: Vec<u8> = ends.iter().flat_map(|end| end.to_le_bytes()).collect();
            bench.npy_bytes(name, "<u4", &[groups], &bytes);
        }
        bench.succeed("quantize w.npy -o q.safetensors#w --format q8_0");
        for line in [
            "grouped x.npy q.safetensors#w --offsets ends.npy",
            "grouped entries.npy q.safetensors#w --masked counts.npy",
        ] {
            let said = bench.succeed(&format!("{line} -o y.npy --adapter {adapter} --check"));
            assert!(said.contains("within the bound"), "{said}");
        }
    }
}
