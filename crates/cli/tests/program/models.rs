//! Runs `tilewise qmatmul --check` on models that MLX, gguf and others wrote, and compares with
//! products of the weights as those packages dequantize them.

use crate::bench::{Bench, assert_close, every_adapter};
use serde_json::Value;
use std::collections::BTreeMap;
use tilewise_core::DType;
use tilewise_core::quant::quantize;
use tilewise_files::Output;

/// Multiplies with each matrix of a model for which `folder` has an expected product, and returns
/// their number. A stack of matrices is refused.
fn check(bench: &Bench, model: &str, folder: &str, adapter: &str) -> usize {
    let expected = bench.tensors(&format!("{folder}/expected.safetensors"));
    let listed: Value =
        serde_json::from_str(&bench.succeed(&format!("inspect {model} --json"))).unwrap();
    let mut checked = 0;
    for tensor in listed["tensors"].as_array().unwrap() {
        let name = tensor["name"].as_str().unwrap();
        let Some(y) = expected.get(&format!("{}.y", name.trim_end_matches(".weight"))) else {
            continue;
        };
        let shape: Vec<u64> =
            tensor["shape"].as_array().unwrap().iter().map(|e| e.as_u64().unwrap()).collect();
        let x = format!("{folder}/expected.safetensors#x.{}", shape.last().unwrap());
        let line = format!("qmatmul {x} {model}#{name} -o y.npy --adapter {adapter} --check");
        if let [2, n, k] = shape[..] {
            let why = "one matrix [N,K]; `tilewise grouped`";
            bench.refuses(&line, &[name, &format!("[2,{n},{k}]"), why]);
            continue;
        }
        bench.succeed(&line);
        let (found_shape, found) = bench.read_npy("y.npy");
        assert_eq!(found_shape, [3, shape[0] as usize], "{name}");
        std::fs::remove_file(bench.path("y.npy")).unwrap();
        let largest = y.iter().fold(0f64, |largest, y| largest.max(y.abs()));
        assert_close(&found, y, largest * 1e-5);
        checked += 1;
    }
    checked
}

fn all_adapters(folders: &[&str], models: &[(&str, usize)]) {
    let bench = Bench::new();
    folders.iter().for_each(|folder| bench.take(folder));
    for adapter in every_adapter() {
        for (model, count) in models {
            let folder = model.split('/').next().unwrap();
            assert_eq!(check(&bench, model, folder, &adapter), *count, "{model} on {adapter}");
        }
    }
}

#[test]
fn mlx() {
    all_adapters(&["mlx"], &[("mlx", 22 + 3 + 3)]);
}

#[test]
fn gguf() {
    let models = [("gguf/all.gguf", 13 + 3), ("gguf-recoded/model.gguf", 11 + 1)];
    all_adapters(&["gguf", "gguf-recoded"], &models);
}

#[test]
fn gptq_and_awq() {
    let folders = ["awq", "gptq-4bit-act-order", "gptq-8bit"];
    all_adapters(&folders, &folders.map(|folder| (folder, 1)));
}

/// Models of foreign layouts, whose weights the packages dequantized: each matrix is written as
/// numbers, and multiplied.
#[test]
fn foreign_layouts() {
    let bench = Bench::new();
    for (folder, count) in [
        ("compressed-tensors", 24),
        ("fp8", 14),
        ("gptq", 11),
        ("gptq-v2", 11),
        ("awq-gemv", 2),
        ("awq-gemv-fast", 2),
        ("bitsandbytes", 8),
        ("hqq", 7),
        ("gpt-oss", 2),
    ] {
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../files/tests/data");
        let model = format!("{data}/{folder}");
        let expected = bench.tensors(&format!("{model}/expected.safetensors"));
        assert_eq!(expected.len(), count);
        for (name, weights) in &expected {
            let name = name.strip_suffix(".dequantized").unwrap();
            bench.succeed(&format!("dequantize {model}#{name} -o w.npy"));
            let (shape, found) = bench.read_npy("w.npy");
            let largest = weights.iter().fold(0f64, |largest, weight| largest.max(weight.abs()));
            assert_close(&found, weights, largest * 1e-6);
            if let [_, k] = shape[..] {
                bench.npy("x.npy", &[2, k], &vec![0.5; 2 * k]);
                let line = format!("qmatmul x.npy {model}#{name} -o y.npy --adapter cpu --check");
                bench.succeed(&line);
                std::fs::remove_file(bench.path("y.npy")).unwrap();
            }
            std::fs::remove_file(bench.path("w.npy")).unwrap();
        }
    }
}

/// Files that differ from those above only in how they are read; the CPU is enough for them.
#[test]
fn several_files_and_other_versions() {
    let bench = Bench::new();
    let folders = ["mlx", "mlx-sharded", "gguf"];
    let gptq = ["gptq-4bit", "gptq-4bit-column", "gptq-4bit-v2", "gptq-4bit-v2-act-order"];
    let eight = ["gptq-8bit-act-order", "gptq-8bit-v2-act-order"];
    folders.iter().chain(&gptq).chain(&eight).for_each(|folder| bench.take(folder));
    for folder in gptq.iter().chain(&eight) {
        assert_eq!(check(&bench, folder, folder, "cpu"), 1, "{folder}");
    }
    for (model, folder, count) in [
        ("mlx-sharded", "mlx", 28),
        ("mlx-sharded/model.safetensors.index.json", "mlx", 28),
        ("mlx/model.safetensors", "mlx", 28),
        ("gguf/v2.gguf", "gguf", 3),
        ("gguf/aligned.gguf", "gguf", 3),
        ("gguf/split-00001-of-00002.gguf", "gguf", 4),
        ("gguf/split-00002-of-00002.gguf", "gguf", 4),
    ] {
        assert_eq!(check(&bench, model, folder, "cpu"), count, "{model}");
    }
}

#[test]
fn dense_tensors_of_models_are_operands_and_weights() {
    let bench = Bench::new();
    ["mlx", "gguf"].iter().for_each(|folder| bench.take(folder));
    for (model, folder, name, k) in [
        ("gguf/all.gguf", "gguf", "blk.1.f32", 64),
        ("gguf/all.gguf", "gguf", "blk.1.f16", 64),
        ("gguf/all.gguf", "gguf", "blk.1.bf16", 64),
        ("mlx", "mlx", "model.layers.2.bf16", 128),
    ] {
        let x = format!("{folder}/expected.safetensors#x.{k}");
        let y = &bench.tensors(&format!("{folder}/expected.safetensors"))[&format!("{name}.y")];
        bench.succeed(&format!(
            "matmul {x} {model}#{name}.weight --transpose-b -o y.npy --adapter cpu --check"
        ));
        assert_close(&bench.read_npy("y.npy").1, y, 1e-4);
        bench.succeed(&format!(
            "quantize {model}#{name}.weight -o q.safetensors --format affine-8bit-g32-f32"
        ));
        assert!(bench.succeed("inspect q.safetensors").contains(&format!("\n{name} ")), "{name}");
    }
}

#[test]
fn what_is_known_decides_where_the_file_does_not() {
    let bench = Bench::new();
    ["mlx.safetensors", "mlx_expected.safetensors"].iter().for_each(|name| bench.take(name));
    let line = "qmatmul mlx_expected.safetensors#f16.x mlx.safetensors#f16 -o y.npy --adapter cpu";
    // In neither format are rows as long as those of this X.
    bench.npy("x.npy", &[1, 64], &[1.0; 64]);
    bench.refuses(
        "qmatmul x.npy mlx.safetensors#f16 -o y.npy --adapter cpu",
        &["affine-4bit-g64-f16 [5, 192]", "affine-8bit-g32-f16 [5, 96]", "name the format"],
    );
    bench.refuses(&format!("{line} --bits 3"), &["3 bits", "f16.weight U32 [5, 24]"]);
    bench.refuses(&format!("{line} --format mxfp4"), &["mxfp4", "f16.weight"]);
    for known in [
        "",
        "--mode affine",
        "--bits 4",
        "--group 64",
        "--bits 4 --group 64 --mode affine",
        "--format affine-4bit-g64-f16",
    ] {
        bench.succeed(&format!("{line} --check {known}"));
        let y = &bench.tensors("mlx_expected.safetensors")["f16.y"];
        assert_close(&bench.read_npy("y.npy").1, y, 1e-4);
        std::fs::remove_file(bench.path("y.npy")).unwrap();
    }
    assert!(bench.fail(2, &format!("{line} --mode afine")).contains("affine"));
    assert!(bench.fail(2, &format!("{line} --format mxpf4")).contains("nearest names are mxfp4"));
}

/// A stack of one matrix counts as this matrix. If the format is open, so is the shape.
#[test]
fn stacks_of_one_and_of_an_open_format() {
    let bench = Bench::new();
    bench.npy("x.npy", &[2, 64], &[1.0; 128]);
    let weights = quantize(&[1.0; 3 * 64], 3, 64, "affine-8bit-g32-f32".parse().unwrap()).unwrap();
    let planes = weights.planes();
    let words: [(&str, DType, usize); 3] =
        [("w.weight", DType::U32, 16), ("w.scales", DType::F32, 2), ("w.biases", DType::F32, 2)];
    let put = |rows: &[usize]| {
        let shapes = words.map(|(.., columns)| [rows, &[columns]].concat());
        let outputs = words.iter().zip(&shapes).zip(planes);
        let outputs = outputs
            .map(|(((name, dtype, _), shape), bytes)| Output::dense(name, *dtype, shape, bytes));
        tilewise_files::write(
            bench.path("q.safetensors"),
            outputs.collect(),
            &BTreeMap::new(),
            &mut |_, _| {},
        )
        .unwrap();
    };
    bench.npy("x96.npy", &[2, 96], &[1.0; 192]);
    let line = "qmatmul x.npy q.safetensors -o y.npy --adapter cpu";
    let unfit = "qmatmul x96.npy q.safetensors -o y.npy --adapter cpu";
    for rows in [&[3][..], &[1, 3]] {
        put(rows);
        bench.refuses(unfit, &["it may be ", "name the format"]);
        for known in ["", " --bits 8"] {
            bench.succeed(&format!("{line} --check{known}"));
            assert_close(&bench.read_npy("y.npy").1, &[64.0; 6], 1e-3);
            std::fs::remove_file(bench.path("y.npy")).unwrap();
        }
    }
    put(&[3, 1]);
    bench.refuses(unfit, &["it may be affine-4bit-g64-f32 [3, 1, 128] or ", "name the format"]);
    bench.refuses(&format!("{line} --bits 8"), &["shape [3,1,64]; W is one matrix"]);
    bench.safetensors("v.safetensors", &[("v", &[64], &[1.0; 64])]);
    bench.refuses(
        "qmatmul x.npy v.safetensors#v -o y.npy --adapter cpu",
        &["v: shape [64]; W is one matrix [N,K]\n"],
    );
}

#[test]
fn dequantized_weights() {
    let bench = Bench::new();
    ["gptq-4bit-act-order", "gguf", "mlx"].iter().for_each(|folder| bench.take(folder));
    // The columns come back in W's order.
    bench.succeed("dequantize gptq-4bit-act-order -o w.npy");
    let expected = bench.tensors("gptq-4bit-act-order/expected.safetensors");
    let (shape, weights) = bench.read_npy("w.npy");
    assert_eq!(
        (&shape[..], &weights),
        (&[32, 64][..], &expected["model.layers.0.self_attn.q_proj.dequantized"])
    );
    bench.succeed("dequantize gguf/all.gguf#blk.0.q4_k -o w.safetensors --dtype bf16");
    bench.succeed("dequantize gguf/all.gguf#blk.0.q4_k -o f32.safetensors#w");
    let (rounded, exact) = (
        &bench.tensors("w.safetensors")["blk.0.q4_k.weight"],
        &bench.tensors("f32.safetensors")["w"],
    );
    assert_eq!(rounded.len(), 6 * 512);
    assert!(rounded.iter().zip(exact).all(|(r, e)| (r - e).abs() <= e.abs() / 256.0));
    bench.succeed("dequantize mlx#model.layers.1.switch_mlp.affine-4bit-g64-f16 -o stack.npy");
    assert_eq!(bench.read_npy("stack.npy").0, [2, 6, 128]);
    let before = bench.files();
    bench.refuses(
        "dequantize gguf/all.gguf -o v.npy",
        &["gguf/all.gguf", "14 tensors", "blk.0.q4_0, blk.0.q4_1"],
    );
    bench.refuses(
        "dequantize gguf/all.gguf#blk.0.q4k -o v.npy",
        &["gguf/all.gguf", "are \"blk.0.q4_k\", "],
    );
    let why = "q4_0 is a format of GGUF; 4 bits applies to MLX's formats only";
    bench.refuses("dequantize gguf/all.gguf#blk.0.q4_0 -o v.npy --bits 4", &[why]);
    bench.gguf_with_type("q8_k.gguf", "blk.0.q4_k.weight", 15);
    bench.npy("x.npy", &[1, 512], &[1.0; 512]);
    for known in ["", " --format q4_k", " --bits 4"] {
        for line in ["dequantize q8_k.gguf#", "qmatmul x.npy q8_k.gguf#"] {
            let line = format!("{line}blk.0.q4_k.weight -o v.npy{known}");
            let why = "blk.0.q4_k.weight is of type Q8_K, which is not read; F32, F16, Q4_0, ";
            bench.refuses(&line, &["q8_k.gguf: ", why, ", IQ4_XS, I32, IQ1_M, BF16, "]);
        }
    }
    ["q8_k.gguf", "x.npy"].iter().for_each(|name| std::fs::remove_file(bench.path(name)).unwrap());
    let why = "quantized to q4_0 already; `convert` writes another format";
    bench.refuses("quantize gguf/all.gguf#blk.0.q4_0 -o v.safetensors", &[why]);
    assert!(
        bench.fail(2, "dequantize gguf/all.gguf#blk.0.q4_k -o v.npy --dtype bf16").contains("bf16")
    );
    assert_eq!(bench.files(), before);
    // Integers are no weights.
    let weights: Vec<u8> = [1f32, 2.0].iter().flat_map(|weight| weight.to_le_bytes()).collect();
    let outputs = ["ids", "w"].into_iter().zip([DType::I32, DType::F32]);
    let outputs =
        outputs.map(|(name, dtype)| Output::dense(name, dtype, &[1, 2], &weights)).collect();
    tilewise_files::write(bench.path("m.safetensors"), outputs, &BTreeMap::new(), &mut |_, _| {})
        .unwrap();
    bench.succeed("dequantize m.safetensors -o v.npy");
    assert_eq!(bench.read_npy("v.npy"), (vec![1, 2], vec![1.0, 2.0]));
    bench.safetensors("v.safetensors", &[("v", &[3], &[1.0; 3])]);
    bench.refuses(
        "dequantize v.safetensors -o w.npy",
        &["v.safetensors: no matrix is in it; `tilewise inspect v.saf"],
    );
}
