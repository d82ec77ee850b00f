//! `tilewise matmul`: shapes, transposes, batches, epilogues, output types.

use crate::bench::{Bench, adapters, assert_close, numbers, product, transposed};

/// The error admitted in an f32 product with small sums.
const CLOSE: f64 = 1e-4;

fn gelu(x: f64) -> f64 {
    x / 2.0 * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
}

#[test]
fn shapes_and_transposes() {
    for adapter in adapters() {
        for (m, n, k) in
            [(1, 1, 1), (2, 3, 1), (33, 29, 31), (64, 64, 64), (64, 3, 7), (1, 130, 67), (97, 1, 5)]
        {
            let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
            let bench = Bench::new();
            bench.npy("a.npy", &[m, k], &a);
            bench.npy("b.npy", &[k, n], &b);
            bench.npy("at.npy", &[k, m], &transposed(&a, m, k));
            bench.npy("bt.npy", &[n, k], &transposed(&b, k, n));
            let expected = product(&a, &b, m, n, k);
            for operands in [
                "a.npy b.npy",
                "a.npy bt.npy --transpose-b",
                "at.npy b.npy --transpose-a",
                "at.npy bt.npy --transpose-a --transpose-b",
            ] {
                bench.succeed(&format!("matmul {operands} -o c.npy --adapter {adapter} --check"));
                let (shape, values) = bench.read_npy("c.npy");
                assert_eq!(shape, [m, n], "{operands} on {adapter}");
                assert_close(&values, &expected, CLOSE);
            }
        }
    }
}

#[test]
fn empty_extents() {
    for adapter in adapters() {
        for (m, n, k) in [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)] {
            let bench = Bench::new();
            bench.npy("a.npy", &[m, k], &numbers(m * k, 1));
            bench.npy("b.npy", &[k, n], &numbers(k * n, 2));
            bench.succeed(&format!("matmul a.npy b.npy -o c.npy --adapter {adapter} --check"));
            assert_eq!(
                bench.read_npy("c.npy"),
                (vec![m, n], vec![0.0; m * n]),
                "{m}, {n}, {k} on {adapter}"
            );
        }
    }
}

#[test]
fn batches_and_broadcast() {
    let (batch, m, n, k) = (3, 5, 7, 11);
    for adapter in adapters() {
        for (a_shape, b_shape) in [
            (vec![batch, m, k], vec![batch, k, n]),
            (vec![batch, m, k], vec![k, n]),
            (vec![m, k], vec![batch, k, n]),
            (vec![batch, m, k], vec![1, k, n]),
        ] {
            let (a, b) =
                (numbers(a_shape.iter().product(), 3), numbers(b_shape.iter().product(), 4));
            let bench = Bench::new();
            bench.npy("a.npy", &a_shape, &a);
            bench.npy("b.npy", &b_shape, &b);
            bench.succeed(&format!("matmul a.npy b.npy -o c.npy --adapter {adapter} --check"));
            let entry = |values: &[f32], len: usize, i: usize| {
                values[i * len % values.len()..][..len].to_vec()
            };
            let expected: Vec<f64> = (0..batch)
                .flat_map(|i| product(&entry(&a, m * k, i), &entry(&b, k * n, i), m, n, k))
                .collect();
            let (shape, values) = bench.read_npy("c.npy");
            assert_eq!(shape, [batch, m, n]);
            assert_close(&values, &expected, CLOSE);
        }
    }
}

#[test]
fn one_matrix_is_added_to_every_entry() {
    let (batch, m, n, k) = (3, 4, 5, 2);
    let (a, b, added) = (numbers(batch * m * k, 1), numbers(k * n, 2), numbers(m * n, 3));
    let bench = Bench::new();
    bench.npy("a.npy", &[batch, m, k], &a);
    bench.npy("b.npy", &[k, n], &b);
    bench.npy("added.npy", &[m, n], &added);
    let plain = product(&a, &b, batch * m, n, k);
    let expected: Vec<f64> =
        plain.iter().enumerate().map(|(i, x)| x + 3.0 * f64::from(added[i % (m * n)])).collect();
    for adapter in adapters() {
        let flags =
            format!("--beta 2 --c added.npy --residual added.npy --adapter {adapter} --check");
        bench.succeed(&format!("matmul a.npy b.npy -o c.npy {flags}"));
        assert_close(&bench.read_npy("c.npy").1, &expected, CLOSE);
    }
}

#[test]
fn a_wider_c0_is_rounded_with_a_warning() {
    let bench = Bench::new();
    bench.npy("a.npy", &[1, 1], &[2.0]);
    // Between two numbers of f16.
    bench.npy("c0.npy", &[1, 1], &[2049.0]);
    let output = bench.run(
        "matmul a.npy a.npy -o c.npy --beta 1 --c c0.npy --out-dtype f16 --adapter cpu --check",
    );
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && stderr.contains("C0: f32 rounded to f16"), "{stderr}");
    assert_eq!(bench.read_npy("c.npy").1, [2052.0]);
    // Without a type for C, the wider one is taken.
    let output = bench.run("matmul a.npy a.npy -o c.npy --beta 1 --c c0.npy --adapter cpu --check");
    assert!(output.status.success() && output.stderr.is_empty());
    assert_eq!(bench.read_npy("c.npy").1, [2053.0]);
}

#[test]
fn epilogues() {
    let (m, n, k) = (9, 6, 4);
    let (a, b, old, residual) =
        (numbers(m * k, 1), numbers(k * n, 2), numbers(m * n, 3), numbers(m * n, 4));
    let (along_n, along_m) = (numbers(n, 5), numbers(m, 6));
    let bench = Bench::new();
    for (name, shape, values) in [
        ("a", vec![m, k], &a),
        ("b", vec![k, n], &b),
        ("c0", vec![m, n], &old),
        ("r", vec![m, n], &residual),
        ("vn", vec![n], &along_n),
        ("vm", vec![m], &along_m),
    ] {
        bench.npy(&format!("{name}.npy"), &shape, values);
    }
    let plain = product(&a, &b, m, n, k);
    let wide = |values: &[f32], i: usize| f64::from(values[i]);
    type Expected<'a> = &'a dyn Fn(usize, f64) -> f64;
    let cases: [(&str, Expected<'_>); 8] = [
        ("--alpha -0.5", &|_, x| -0.5 * x),
        ("--beta 2 --c c0.npy", &|i, x| x + 2.0 * wide(&old, i)),
        ("--bias vn.npy --activation relu", &|i, x| (x + wide(&along_n, i % n)).max(0.0)),
        ("--bias vm.npy --bias-along m", &|i, x| x + wide(&along_m, i / n)),
        ("--activation gelu", &|_, x| gelu(x)),
        ("--activation gelu-erf", &|_, x| tilewise_oracle::erf_gelu(x)),
        ("--activation silu --residual r.npy", &|i, x| x / (1.0 + (-x).exp()) + wide(&residual, i)),
        (
            "--alpha 2 --beta -1 --c c0.npy --bias vn.npy --activation relu --residual r.npy",
            &|i, x| (2.0 * x - wide(&old, i) + wide(&along_n, i % n)).max(0.0) + wide(&residual, i),
        ),
    ];
    for adapter in adapters() {
        for (flags, expected) in &cases {
            bench.succeed(&format!(
                "matmul a.npy b.npy -o c.npy --adapter {adapter} --check {flags}"
            ));
            let expected: Vec<f64> =
                plain.iter().enumerate().map(|(i, &x)| expected(i, x)).collect();
            assert_close(&bench.read_npy("c.npy").1, &expected, CLOSE);
        }
    }
}

#[test]
fn output_types_and_files() {
    let (m, n, k) = (5, 3, 8);
    let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
    let expected = product(&a, &b, m, n, k);
    for adapter in adapters() {
        let bench = Bench::new();
        bench.npy("a.npy", &[m, k], &a);
        bench.npy("b.npy", &[k, n], &b);
        let multiply = |flags: &str| {
            bench.succeed(&format!("matmul a.npy b.npy --adapter {adapter} --check {flags}"))
        };
        multiply("-o half.npy --out-dtype f16");
        assert_close(&bench.read_npy("half.npy").1, &expected, 4e-3);
        // A bf16 result is read back as an operand of the next product: times the identity it is
        // itself.
        multiply("-o brain.safetensors#y --out-dtype bf16");
        let identity: Vec<f32> =
            (0..n * n).map(|at| f32::from(u8::from(at / n == at % n))).collect();
        bench.npy("one.npy", &[n, n], &identity);
        bench.succeed(&format!(
            "matmul brain.safetensors#y one.npy -o back.npy --adapter {adapter} --check"
        ));
        assert_close(&bench.read_npy("back.npy").1, &expected, 3e-2);
        // The only tensor of a file needs no name; the program calls it `c`.
        multiply("-o plain.safetensors");
        for operand in ["plain.safetensors", "plain.safetensors#c"] {
            bench.succeed(&format!("matmul {operand} one.npy -o back.npy --adapter {adapter}"));
            assert_close(&bench.read_npy("back.npy").1, &expected, CLOSE);
        }
    }
}

#[test]
fn two_16_bit_operands_give_their_type() {
    for adapter in adapters() {
        let bench = Bench::new();
        let halves: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0]
            .iter()
            .flat_map(|&v| half::f16::from_f32(v).to_le_bytes())
            .collect();
        bench.npy_bytes("a.npy", "<f2", &[2, 2], &halves);
        let report =
            bench.succeed(&format!("matmul a.npy a.npy -o c.npy --adapter {adapter} --check"));
        assert!(report.contains("f16"), "{report}");
        assert_eq!(bench.read_npy("c.npy"), (vec![2, 2], vec![7.0, 10.0, 15.0, 22.0]));
        assert_eq!(
            std::fs::read(bench.path("c.npy")).unwrap().len() % 64,
            8,
            "four elements of two bytes"
        );
    }
}

#[test]
fn a_kernel_is_forced_and_reported() {
    for adapter in adapters().into_iter().filter(|&adapter| adapter != "cpu") {
        let bench = Bench::new();
        bench.npy("a.npy", &[65, 33], &numbers(65 * 33, 1));
        bench.npy("b.npy", &[33, 17], &numbers(33 * 17, 2));
        let report = bench.succeed(&format!(
            "matmul a.npy b.npy -o c.npy --adapter {adapter} --kernel naive --check"
        ));
        let kernel = report
            .lines()
            .find(|line| line.starts_with("kernel"))
            .expect("a line about the kernel");
        assert!(kernel.contains("naive"), "{report}");
    }
}

#[test]
fn the_report_names_adapter_kernel_time_and_rate() {
    for adapter in adapters() {
        let bench = Bench::new();
        bench.npy("a.npy", &[64, 64], &numbers(64 * 64, 1));
        let report =
            bench.succeed(&format!("matmul a.npy a.npy -o c.npy --adapter {adapter} --check"));
        for part in ["adapter", "kernel", "time", "TFLOP/s", "check"] {
            assert!(report.contains(part), "no {part} in\n{report}");
        }
    }
}

/// On software adapters, which have no matrix units, a precision changes nothing. The report says
/// the precision, and that it changes nothing.
#[test]
fn less_may_be_permitted() {
    let (m, n, k) = (5, 6, 7);
    let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
    let bench = Bench::new();
    bench.npy("a.npy", &[m, k], &a);
    bench.npy("b.npy", &[k, n], &b);
    for adapter in adapters() {
        for name in ["", "f16-sums", "split-f32", "split-f32-fast", "int8-activations"] {
            let flag = if name.is_empty() { String::new() } else { format!("--precision {name}") };
            let report = bench.succeed(&format!(
                "matmul a.npy b.npy -o c.npy --adapter {adapter} --check {flag}"
            ));
            let said = format!(", precision {name}, as with precision f32: nothing here makes use");
            assert_eq!(report.contains(&said), !flag.is_empty(), "{report}");
            assert_eq!(report.contains("precision"), !flag.is_empty(), "{report}");
            assert_close(&bench.read_npy("c.npy").1, &product(&a, &b, m, n, k), CLOSE);
        }
    }
}
