//! `tilewise quantize` and `tilewise qmatmul`.

use crate::bench::{Bench, adapters, assert_close, numbers, product, transposed};

/// Weights that 4 bits represent exactly: in each group of 64, the numbers 0..15 times a power of two.
fn exact_weights(n: usize, k: usize) -> Vec<f32> {
    (0..n * k).map(|at| (at * 7 % 16) as f32 * [0.25, 1.0, 4.0][at / 64 % 3]).collect()
}

#[test]
fn representable_weights_survive() {
    for adapter in adapters() {
        for (m, n, k) in [(1, 1, 64), (3, 5, 192), (40, 70, 128)] {
            let (x, w) = (numbers(m * k, 1), exact_weights(n, k));
            let bench = Bench::new();
            bench.npy("x.npy", &[m, k], &x);
            bench.npy("w.npy", &[n, k], &w);
            let report = bench.succeed("quantize w.npy -o q.safetensors --check");
            assert!(report.contains("w.weight"), "{report}");
            assert!(report.contains("error    0.00%"), "{report}");
            let expected = product(&x, &transposed(&w, n, k), m, n, k);
            for weights in ["q.safetensors", "q.safetensors#w"] {
                bench.succeed(&format!("qmatmul x.npy {weights} -o y.npy --adapter {adapter} --check"));
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
            "qmatmul x.npy q.safetensors#layers.0.w -o y.npy --adapter {adapter} --check --kernel naive"
        ));
        let expected = product(&x, &transposed(&w, n, k), m, n, k);
        let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
        let found = bench.read_npy("y.npy").1;
        let error = norm(&mut found.iter().zip(&expected).map(|(f, e)| f - e)) / norm(&mut expected.iter().copied());
        assert!((0.001..0.1).contains(&error), "relative error {error}");
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
    bench.npy("w.npy", &[1, 64], &[f32::NAN; 64]);
    assert!(bench.fail(1, "quantize w.npy -o q.safetensors").contains("NaN"));
    assert!(bench.fail(2, "quantize w.npy -o q.npy").contains("the extension must be .safetensors\n"));
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
