//! Files that MLX, gguf and others' layouts made, against products of what those packages
//! dequantize.

use safetensors::SafeTensors;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tilewise_core::quant::dequantize;
use tilewise_core::{QuantFormat, convert};
use tilewise_files::{Model, TensorKind, TensorView};

fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/data").join(path)
}

/// The numbers of each tensor of an `expected.safetensors`.
fn expected(folder: &str) -> BTreeMap<String, Vec<f64>> {
    let bytes = std::fs::read(data(folder).join("expected.safetensors")).unwrap();
    let numbers = |view: &safetensors::tensor::TensorView<'_>| -> Vec<f64> {
        let data = view.data();
        match view.dtype() {
            safetensors::Dtype::F64 => {
                data.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
            }
            safetensors::Dtype::F32 => {
                data.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes).into()).collect()
            }
            other => panic!("{other}"),
        }
    };
    SafeTensors::deserialize(&bytes)
        .unwrap()
        .iter()
        .map(|(name, view)| (name.to_owned(), numbers(&view)))
        .collect()
}

/// The weights, their columns in the order of W.
fn weights(tensor: &TensorView<'_>) -> Vec<f32> {
    if let Ok((dtype, bytes)) = tensor.dense() {
        return convert::decode(dtype, bytes).unwrap();
    }
    let read = dequantize(&tensor.quantized().unwrap());
    let Some(order) = tensor.order().unwrap() else { return read };
    let mut sorted = vec![0.0; read.len()];
    for (i, weight) in read.iter().enumerate() {
        sorted[i / order.len() * order.len() + order[i % order.len()] as usize] = *weight;
    }
    sorted
}

/// Checks that some rows are those of the whole.
fn some_rows(tensor: &TensorView<'_>, n: usize) {
    let Ok(whole) = tensor.quantized() else { return assert!(tensor.rows(0..1).is_err()) };
    for rows in [0..n, 0..0, n..n, 1..n - 1, 3..5] {
        let read = tensor.rows(rows.clone()).unwrap();
        assert_eq!((read.n(), read.k(), read.factor()), (rows.len(), whole.k(), whole.factor()));
        for (part, plane) in read.planes().iter().zip(whole.planes()) {
            let row = plane.len() / n;
            assert!(*part == plane[rows.start * row..rows.end * row], "{tensor:?} {rows:?}");
        }
    }
    let beyond = tensor.rows(1..n + 1).unwrap_err().to_string();
    assert!(beyond.contains(&format!("rows 1..{} of a matrix of {n} rows", n + 1)), "{beyond}");
}

/// Checks x·Wᵀ of each tensor that the folder expects a product of, and returns how many there
/// were.
fn check(path: &str, folder: &str) -> usize {
    let expected = expected(folder);
    let model = Model::open(data(path)).unwrap();
    let mut checked = 0;
    for tensor in model.tensors() {
        assert!(
            !matches!(tensor.kind(), TensorKind::Unclear(_) | TensorKind::Other(_)),
            "{tensor:?}"
        );
        let name = tensor.name().strip_suffix(".weight").unwrap_or(tensor.name());
        let Some(y) = expected.get(&format!("{name}.y")) else { continue };
        let ((n, k), w) = (tensor.matrix().unwrap(), weights(&tensor));
        some_rows(&tensor, n);
        let x = &expected[&format!("x.{k}")];
        if let Some(same) = expected.get(&format!("{name}.dequantized")) {
            assert!(w.iter().zip(same).all(|(w, same)| f64::from(*w) == *same), "{name}");
        }
        // Each matrix of a stack has a product. They lie one after the other.
        let rows = tensor.shape()[tensor.shape().len() - 2];
        for (i, y) in y.iter().enumerate() {
            let (row, column) = (i / rows % 3, i / rows / 3 * rows + i % rows);
            let terms = || (0..k).map(|j| x[row * k + j] * f64::from(w[column * k + j]));
            let (sum, size): (f64, f64) = (terms().sum(), terms().map(f64::abs).sum());
            assert!((sum - y).abs() <= size * 1e-6, "{name} at {i}: {sum} instead of {y}");
        }
        assert_eq!(y.len(), 3 * n, "{name}");
        if let (TensorKind::Quantized(format), "gguf" | "safetensors") =
            (tensor.kind(), tensor.stored())
        {
            assert!(name.ends_with(format.name().trim_start_matches("gguf-")), "{name}: {format}");
        }
        checked += 1;
    }
    checked
}

#[test]
fn mlx() {
    assert_eq!(check("mlx", "mlx"), 18 + 4 + 3 + 1 + 3);
    assert_eq!(check("mlx/model.safetensors", "mlx"), 29);
    assert_eq!(check("mlx-sharded", "mlx"), 29);
    assert_eq!(check("mlx-sharded/model.safetensors.index.json", "mlx"), 29);
}

#[test]
fn gguf() {
    assert_eq!(check("gguf/all.gguf", "gguf"), 13 + 1 + 3);
    assert_eq!(check("gguf/v2.gguf", "gguf"), 3);
    assert_eq!(check("gguf/aligned.gguf", "gguf"), 3);
    assert_eq!(check("gguf/split-00001-of-00002.gguf", "gguf"), 4);
    let model = Model::open(data("gguf/all.gguf")).unwrap();
    assert_eq!(model.gguf_value("general.architecture").unwrap().as_str(), Some("llama"));
    assert_eq!(model.gguf_value("general.name").unwrap().as_str(), Some("vectors"));
    assert_eq!(model.gguf_value("vectors.nested").unwrap().to_string(), "[[1, 2], [3]]");
    assert_eq!(
        model.gguf_value("tokenizer.ggml.tokens").unwrap().to_string(),
        "[\"<s>\", \"a\", \"é\"]"
    );
    assert_eq!(Model::open(data("gguf/v2.gguf")).unwrap().gguf_version(), Some(2));
    let aligned = Model::open(data("gguf/aligned.gguf")).unwrap();
    assert!(aligned.tensors().all(|tensor| tensor.offset().is_multiple_of(64)));
}

#[test]
fn recoded_types_of_gguf() {
    let path = "gguf-recoded/model.gguf";
    assert_eq!(check(path, "gguf-recoded"), 11 + 2);
    let (model, expected) = (Model::open(data(path)).unwrap(), expected("gguf-recoded"));
    let mut seen = 0;
    for (stored, format) in [
        ("IQ2_XXS", "int8-g32"),
        ("IQ2_XS", "int8-g16"),
        ("IQ2_S", "int8-g16"),
        ("IQ3_XXS", "int8-g32"),
        ("IQ3_S", "affine-4bit-g32-f32"),
        ("IQ1_S", "affine-2bit-g32-f32"),
        ("IQ1_M", "int8-g16"),
        ("TQ1_0", "affine-2bit-g128-f16"),
        ("TQ2_0", "affine-2bit-g128-f16"),
        ("Q1_0", "affine-2bit-g128-f16"),
        ("Q2_0", "affine-2bit-g64-f16"),
        ("NVFP4", "nvfp4"),
    ] {
        let name = format!("special.{}", stored.to_lowercase());
        let tensor = model.get(&name).unwrap();
        let is = (tensor.stored(), tensor.kind().to_string());
        assert_eq!(is, (stored, format.to_owned()));
        let theirs = &expected[&format!("{name}.dequantized")];
        let ours = weights(&tensor);
        assert_eq!(ours.len(), theirs.len());
        for (i, (&ours, &theirs)) in ours.iter().zip(theirs).enumerate() {
            let theirs = theirs as f32;
            let same = ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan();
            // A bias takes the sign of zeros, and takes infinite from infinite.
            let is_lost = ours == 0.0 && theirs == 0.0 || ours.is_nan() && theirs.is_infinite();
            let is_affine = format.starts_with("affine");
            // The scale that e4m3 does not have.
            let is_beyond = format == "nvfp4" && i / 16 == 255 && ours.is_nan();
            assert!(same || is_affine && is_lost || is_beyond, "{name} {i}: {ours} {theirs}");
            seen += usize::from(same);
        }
    }
    assert!(seen > 11 * 6 * 256 + 250 * 16, "{seen}");
    // Weights with one scale keep it as their factor; those of a stack are under their own.
    let one = model.get("blk.1.nvfp4").unwrap();
    assert_eq!((one.factor(), one.kind().to_string()), (Some(0.125), "nvfp4".to_owned()));
    assert_eq!(model.get("blk.1.nvfp4.scale").unwrap().name(), "blk.1.nvfp4");
    let stack = model.get("blk.1.exps.nvfp4").unwrap();
    assert_eq!((stack.factor(), stack.kind().to_string()), (None, "int8-g16".to_owned()));
    let kept: Vec<_> = model.tensors().filter(|tensor| tensor.name().contains("scale")).collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(kept.iter().all(|tensor| tensor.name().ends_with(".input_scale")));
}

/// The packages still make the same files, and the same grids. Python is `TILEWISE_PYTHON`, which
/// must have the packages.
#[test]
fn the_packages_make_these_files() {
    let Ok(python) = std::env::var("TILEWISE_PYTHON") else {
        return eprintln!("skipped: TILEWISE_PYTHON is not set");
    };
    let grids = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/gguf/make_grids.py");
    for script in [data("make_vectors.py"), grids] {
        let made = Command::new(&python).arg("-B").arg(script).arg("--check").output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
}

#[test]
fn gptq_and_awq() {
    let folders: Vec<String> = std::fs::read_dir(data(""))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.starts_with("gptq-") || name == "awq")
        .collect();
    assert_eq!(folders.len(), 9);
    for folder in folders {
        assert_eq!(check(&folder, &folder), 1, "{folder}");
        let model = Model::open(data(&folder)).unwrap();
        let matrix = model.get("model.layers.0.self_attn.q_proj").unwrap();
        assert_eq!(matrix.order().unwrap().is_some(), folder.contains("act-order"), "{folder}");
        let group = if folder.contains("column") { 64 } else { 32 };
        let bits = if folder.contains("8bit") { 8 } else { 4 };
        let format = QuantFormat::affine(bits, group, tilewise_core::DType::F32).unwrap();
        assert_eq!(*matrix.kind(), TensorKind::Quantized(format), "{folder}");
    }
}
