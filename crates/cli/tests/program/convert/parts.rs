//! `tilewise convert` of parts of a model, and of files that it refuses.

use super::model;
use crate::bench::{Bench, numbers};
use safetensors::tensor::{Dtype, TensorView};

#[test]
fn parts_of_a_model() {
    let bench = Bench::new();
    model(&bench);
    for (options, converted) in [
        ("", &["layers.0.exact.weight", "layers.0.random.weight"][..]),
        ("--only exact", &["layers.0.exact.weight"]),
        ("--only exact --only random --except .0.r", &["layers.0.exact.weight"]),
        ("--skip odd --skip random", &["layers.0.exact.weight"]),
        ("--only layers --skip exact", &["layers.0.random.weight"]),
        ("--except exact", &["layers.0.random.weight"]),
    ] {
        let report = bench.succeed(&format!(
            "convert model.safetensors out.safetensors --format mxfp4 {options}"
        ));
        let found: Vec<&str> = report
            .lines()
            .filter(|line| line.contains(" mxfp4 "))
            .map(|line| line.split_once(' ').unwrap().0)
            .collect();
        assert_eq!(found, converted, "{options}");
        let left_out = options.matches("--skip").count();
        let said = if left_out == 0 { String::new() } else { format!(", {left_out} left out") };
        let counted = format!("tensors  {} of 4 converted{said}, the others kept", converted.len());
        assert!(report.contains(&counted), "{options}: {report}");
        assert_eq!(bench.tensors_of("out.safetensors"), 4 - left_out, "{options}");
    }
    bench.refuses(
        "convert model.safetensors new.safetensors --format mxfp4 --skip .",
        &["--skip leaves out all"],
    );
    bench.refuses(
        "convert model.safetensors new.safetensors --format mxfp4 --only norm",
        &["not selected"],
    );
    // Nor is a model copied if its other tensors are in the format already: here all except one.
    for options in [
        "--only exact",
        "--only random --except random",
        "--only random --skip random",
        "--skip random",
    ] {
        let line = format!("convert out.safetensors new.safetensors --format f32 {options}");
        bench.refuses(&line, &["none of ", " tensors can become f32: "]);
    }
    let report = bench
        .succeed("convert model.safetensors all.safetensors --format mxfp4 --skip norm --skip odd");
    assert!(report.contains("tensors  2 of 4 converted, 2 left out\n"), "{report}");
    // Names from the file, and names from the list.
    ["gguf", "mlx", "gptq-4bit"].iter().for_each(|folder| bench.take(folder));
    for (file, options, converted) in [
        ("gguf/all.gguf", "--skip blk.0.q4_0.weight", "15 of 18 converted, 1 left out"),
        ("gguf/all.gguf", "--skip .weight", "0 of"),
        ("gguf/all.gguf", "--only q4_0.weight", "2 of 18 converted, the"),
        ("gguf/all.gguf", "--only blk.0.q4_0", "1 of 18 converted, the"),
        ("mlx", "--only affine-4bit-g64-f16.weight", "2 of 30 converted, the"),
        ("mlx", "--skip affine-4bit-g64-f16.weight", "26 of 30 converted, 2 left out"),
        ("gptq-4bit", "--except q_proj.qweight --only .", "0 of"),
        ("gptq-4bit", "--only q_proj.qweight", "1 of"),
        ("gptq-4bit", "--skip q_proj.qweight", "0 of"),
    ] {
        let line = format!("convert {file} new.safetensors --format f16 {options}");
        if converted == "0 of" {
            bench.fail(1, &line);
            continue;
        }
        let report = bench.succeed(&line);
        assert!(report.contains(&format!("tensors  {converted}")), "{line}: {report}");
    }
    _ = std::fs::remove_file(bench.path("new.safetensors"));
    // A wrong name is refused even if a tensor is in the format already.
    for option in ["--only", "--except", "--skip"] {
        let line = format!(
            "convert out.safetensors new.safetensors --format mxfp4 {option} exact {option} typo"
        );
        assert!(
            bench.fail(2, &line).contains(&format!("{option} typo: no tensor's name contains it"))
        );
    }
    assert!(!bench.path("new.safetensors").exists());
}

#[test]
fn what_cannot_be_converted_is_not_written() {
    let bench = Bench::new();
    model(&bench);
    ["gguf", "mlx", "mlx.safetensors"].iter().for_each(|name| bench.take(name));
    bench.safetensors(
        "odd.safetensors",
        &[("odd.weight", &[4, 100], &numbers(400, 1)), ("v", &[3], &[1.0; 3])],
    );
    let mut weights = numbers(256, 1);
    weights[200] = f32::NAN;
    bench.safetensors(
        "nan.safetensors",
        &[("a.weight", &[2, 128], &[1.0; 256]), ("b.weight", &[2, 128], &weights)],
    );
    bench.safetensors("stack.safetensors", &[("w.weight", &[4, 2, 32], &weights)]);
    let gguf = std::fs::read(bench.path("gguf/all.gguf")).unwrap();
    std::fs::write(bench.path("short.gguf"), &gguf[..gguf.len() - 300]).unwrap();
    std::fs::write(bench.path("header.gguf"), &gguf[..100]).unwrap();
    // A type of GGUF that is not read: its blocks are longer.
    bench.gguf_with_type("other.gguf", "blk.1.bf16.weight", 25);
    std::fs::create_dir(bench.path("empty")).unwrap();
    bench.safetensors("none.safetensors", &[]);
    std::fs::write(bench.path("old.safetensors"), "old").unwrap();
    for (line, parts) in [
        (
            "odd.safetensors old.safetensors --format mxfp4",
            &["odd.safetensors", "2 tensors", "odd.weight: K = 100 is not a multiple of 32"][..],
        ),
        (
            "nan.safetensors old.safetensors --format mxfp4",
            &["nan.safetensors", "b.weight", "row 1, column 72", "NaN"],
        ),
        (
            "stack.safetensors old.safetensors --format mxfp4",
            &["stack.safetensors: w.weight: matrix 3: the weight in row 0, column 8 is NaN"],
        ),
        (
            "odd.safetensors old.safetensors --format mxfp4 --only v",
            &["mxfp4: v: shape [3]", "odd.weight: not selected (--only)"],
        ),
        ("short.gguf old.safetensors --format f16", &["short.gguf", "truncated", "30228 bytes"]),
        ("header.gguf old.safetensors --format f16", &["header.gguf", "truncated"]),
        ("empty old.safetensors --format f16", &["empty", "no .safetensors or .gguf file"]),
        ("none.gguf old.safetensors --format f16", &["none.gguf"]),
        (
            "none.safetensors old.safetensors --format f16",
            &["none.safetensors: no tensors are in it"],
        ),
        (
            "mlx mlx/out.safetensors --format mxfp8",
            &["mlx/out.safetensors", "mxfp8", "mlx/config.json (quantization"],
        ),
        ("model.safetensors none/out.safetensors --format f16", &["no folder none"]),
        ("model.safetensors empty.safetensors/out.safetensors --format f16", &["no folder"]),
        ("model.safetensors old.safetensors --format q4_k", &["q4_k", "not quantized to q4_k"]),
        (
            "mlx.safetensors old.safetensors --format f16",
            &[
                "mlx.safetensors",
                "bf16",
                "name the format",
                "--bits",
                "; or leave it out: --skip ",
                "shows all 3 unclear tensors\n",
            ],
        ),
        ("mlx.safetensors old.safetensors --format f16 --bits 3", &["bf16", "3 bits"]),
    ] {
        bench.refuses(&format!("convert {line}"), parts);
        assert_eq!(std::fs::read(bench.path("old.safetensors")).unwrap(), b"old", "{line}");
    }
    assert!(!bench.path("mlx/out.safetensors").exists());
    // An unclear tensor cannot be copied, either.
    let (codes, dense) = ([0; 4 * 40], [0; 4 * 64 * 4]);
    let fp8 = [
        ("vision.up.weight", TensorView::new(Dtype::F8_E4M3, vec![4, 40], &codes).unwrap()),
        ("vision.up.weight_scale", TensorView::new(Dtype::F32, vec![1], &dense[..4]).unwrap()),
        ("lm_head.weight", TensorView::new(Dtype::F32, vec![4, 64], &dense).unwrap()),
    ];
    let bytes = safetensors::serialize(fp8, None).unwrap();
    std::fs::write(bench.path("fp8.safetensors"), bytes).unwrap();
    let line = "convert fp8.safetensors new.safetensors --format mxfp4";
    for options in ["", "--except vision", "--only lm_head"] {
        let hint = "; or leave it out: --skip vision.up\n";
        bench.refuses(&format!("{line} {options}"), &["fp8.safetensors: \"vision.up\"", hint]);
    }
    let report = bench.succeed(&format!("{line} --skip vision.up"));
    assert!(report.contains("tensors  1 of 2 converted, 1 left out\n"), "{report}");
    std::fs::remove_file(bench.path("new.safetensors")).unwrap();
    // Integers are kept, whatever they are.
    assert!(
        bench
            .succeed("convert other.gguf other.safetensors --format f32")
            .contains("elements of I16")
    );
    // A tensor of a type that safetensors does not have is left out, if --skip says so.
    bench.gguf_with_type("q8_k.gguf", "blk.0.q4_k.weight", 15);
    let why = "q8_k.gguf: blk.0.q4_k.weight: Q8_K is not read";
    let line = "convert q8_k.gguf new.safetensors --format f16";
    bench.refuses(line, &[why, "or leave it out: --skip blk.0.q4_k.weight\n"]);
    let report = bench.succeed(&format!("{line} --skip blk.0.q4_k.weight"));
    assert!(report.contains("15 of 18 converted, 1 left out"), "{report}");
    std::fs::remove_file(bench.path("new.safetensors")).unwrap();
    for (line, part) in [
        ("model.safetensors old.safetensors --format mxpf4", "nearest names are mxfp4"),
        ("model.safetensors old.safetensors --format fp16", "nearest names are f16"),
        ("model.safetensors old.safetensors", "--format"),
        ("model.safetensors old.npy --format f16", "the extension must be .safetensors\n"),
        ("model.safetensors old.safetensors#w --format f16", "without #"),
        ("model.safetensors#norm.weight new.safetensors --format f16", "--only norm.weight"),
    ] {
        assert!(bench.fail(2, &format!("convert {line}")).contains(part), "{line}");
        assert!(!bench.path("new.safetensors").exists() && !bench.path("old.npy").exists());
    }
}
