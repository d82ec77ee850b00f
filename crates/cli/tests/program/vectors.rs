//! Files made by numpy and by MLX (`tests/data/make_vectors.py`) are read right.

use crate::bench::{Bench, adapters, assert_close};
use std::process::Command;

/// Elements of a `.npy` file of f64 as numpy saves it, little-endian and row-major.
fn doubles(bench: &Bench, name: &str) -> Vec<f64> {
    let bytes = std::fs::read(bench.path(name)).unwrap();
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[start..].chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn numpy_files() {
    for adapter in adapters() {
        let bench = Bench::new();
        for (a, b, c, warnings) in [
            ("numpy_a_f64.npy", "numpy_b_f64.npy", "numpy_ab_f64.npy", 2),
            ("numpy_a_f16_columns.npy", "numpy_b_f32_big.npy", "numpy_ab_f32.npy", 0),
        ] {
            [a, b, c].iter().for_each(|name| bench.take(name));
            let output = bench.run(&format!("matmul {a} {b} -o c.npy --adapter {adapter} --check"));
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{stderr}");
            assert_eq!(stderr.matches("f64 narrowed to f32").count(), warnings, "{stderr}");
            assert_close(&bench.read_npy("c.npy").1, &doubles(&bench, c), 2e-5);
        }
    }
}

#[test]
fn mlx_files() {
    for adapter in adapters() {
        let bench = Bench::new();
        bench.take("mlx.safetensors");
        bench.take("mlx_expected.safetensors");
        let expected = std::fs::read(bench.path("mlx_expected.safetensors")).unwrap();
        let expected = safetensors::SafeTensors::deserialize(&expected).unwrap();
        for dtype in ["f32", "f16", "bf16"] {
            let x = format!("mlx_expected.safetensors#{dtype}.x");
            // MLX's files do not tell the format, and the shapes alone leave it open.
            let format = format!("--format affine-4bit-g64-{dtype}");
            bench.succeed(&format!(
                "qmatmul {x} mlx.safetensors#{dtype} {format} -o y.npy --adapter {adapter} --check"
            ));
            let product = expected.tensor(&format!("{dtype}.y")).unwrap();
            let product: Vec<f64> = product
                .data()
                .chunks_exact(8)
                .map(|b| f64::from_le_bytes(b.try_into().unwrap()))
                .collect();
            let (shape, values) = bench.read_npy("y.npy");
            assert_eq!(shape, [3, 5]);
            assert_close(&values, &product, 1e-4);
        }
        let message = bench.fail(
            1,
            "qmatmul mlx_expected.safetensors#f32.x mlx.safetensors -o y.npy --adapter cpu",
        );
        assert!(message.contains("bf16, f16, f32"), "{message}");
    }
}

/// Products by index agree with MLX's, whichever indices are left out.
#[test]
fn mlx_products_by_index() {
    let bench = Bench::new();
    let file = "mlx_gather.safetensors";
    bench.take(file);
    let tensors = bench.tensors(file);
    let [lhs, rhs] = ["lhs", "rhs"].map(|name| format!("--{name}-indices {file}#{name}"));
    for adapter in adapters() {
        for (name, indices) in [
            ("both", format!("{lhs} {rhs}")),
            ("rhs", format!("{rhs}.five")),
            ("lhs", format!("{lhs}.three")),
        ] {
            for (weights, result) in [("w", "y"), ("q --format affine-4bit-g64-f32", "qy")] {
                bench.succeed(&format!(
                    "gather-matmul {file}#x {file}#{weights} {indices} -o y.npy --check --adapter \
                     {adapter}"
                ));
                assert_eq!(bench.read_npy("y.npy").1, tensors[&format!("{result}.{name}")]);
            }
        }
    }
}

/// MLX opens what `convert` makes of other packages' models. Python is `TILEWISE_PYTHON`, which
/// must have the packages.
#[test]
fn mlx_opens_what_is_converted() {
    let Ok(python) = std::env::var("TILEWISE_PYTHON") else {
        return eprintln!("skipped: TILEWISE_PYTHON is not set");
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/opens_in_mlx.py");
    let opened = Command::new(python).args(["-B", script, env!("CARGO_BIN_EXE_tilewise")]).output();
    let opened = opened.unwrap();
    assert!(opened.status.success(), "{}", String::from_utf8_lossy(&opened.stderr));
}
