//! `tilewise convert`.

mod parts;
mod roles;

use crate::bench::{Bench, assert_close, numbers};
use std::collections::BTreeMap;
use tilewise_core::DType;
use tilewise_core::convert::decode;
use tilewise_core::quant::{Quantized, dequantize, quantize, quantize_to};
use tilewise_files::{Model, Output, TensorKind};
use tilewise_tests::program::text;

/// The weights of each tensor of floats, with the columns in W's order, and how far quantizing may
/// have moved each weight. Names are those of layers.
fn weights(bench: &Bench, model: &str) -> BTreeMap<String, (Vec<f32>, Vec<f64>)> {
    let model = Model::open(bench.path(model)).unwrap();
    let mut all = BTreeMap::new();
    for tensor in model.tensors() {
        let (read, steps) = match tensor.kind() {
            TensorKind::Quantized(format) => {
                let weights = tensor.quantized().unwrap();
                let block = format.block() as usize;
                let steps = weights.steps().iter().flat_map(|step| vec![*step; block]).collect();
                (dequantize(&weights), steps)
            }
            _ => {
                let (dtype, bytes) = tensor.dense().unwrap();
                let values = decode(dtype, bytes).unwrap();
                // Half a step of the type, or of its smallest numbers.
                let step =
                    |value: &f32| f64::from(value.abs()) * dtype.unit_roundoff() + 2f64.powi(-25);
                let steps = values.iter().map(step).collect();
                (values, steps)
            }
        };
        let mut sorted = read.clone();
        if let Some(order) = tensor.order().unwrap() {
            let k = order.len();
            read.iter()
                .enumerate()
                .for_each(|(i, w)| sorted[i / k * k + order[i % k] as usize] = *w);
        }
        all.insert(tensor.name().trim_end_matches(".weight").to_owned(), (sorted, steps));
    }
    all
}

/// Converts, and compares each weight with its original, and the report's table with both. Returns
/// the report.
fn converts(bench: &Bench, model: &str, format: &str) -> String {
    let report = bench.succeed(&format!("convert {model} out.safetensors --format {format}"));
    let (before, after) = (weights(bench, model), weights(bench, "out.safetensors"));
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    for line in report.lines().skip(1).take_while(|line| !line.is_empty()) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let name = cells[0].trim_end_matches(".weight");
        let ((before, _), (after, steps)) = (&before[name], &after[name]);
        let differences: Vec<f64> =
            before.iter().zip(after).map(|(b, a)| (f64::from(*b) - f64::from(*a)).abs()).collect();
        for (i, (difference, step)) in differences.iter().zip(steps).enumerate() {
            assert!(
                difference <= step,
                "{name} in {format}, weight {i}: {difference} is more than {step}"
            );
        }
        let norm =
            |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
        let size = norm(&mut before.iter().map(|b| f64::from(*b)));
        let relative = 100.0 * norm(&mut differences.iter().copied()) / size;
        let largest = differences.iter().copied().fold(0.0, f64::max);
        match cells[3] {
            "kept" => assert_eq!(before, after, "{line}"),
            _ => assert_eq!(
                cells[5..],
                [format!("{relative:.3}%"), format!("{largest:.3e}")],
                "{line}"
            ),
        }
    }
    report
}

#[test]
fn whole_models() {
    let bench = Bench::new();
    let folders =
        ["mlx", "mlx-sharded", "gguf", "awq", "gptq-4bit-act-order", "gptq-8bit-v2-act-order"];
    folders.iter().for_each(|folder| bench.take(folder));
    for (model, format, tensors) in [
        ("mlx", "mxfp8", "28 of 30"),
        ("mlx", "affine-4bit-g64-f16", "27 of 30"),
        ("mlx-sharded", "affine-6bit-g32-bf16", "29 of 30"),
        ("mlx-sharded", "f32", "28 of 30"),
        ("gguf/all.gguf", "f16", "16 of 18"),
        ("gguf/all.gguf", "q8_0", "16 of 18"),
        ("gguf/all.gguf", "nvfp4", "17 of 18"),
        ("gguf/split-00001-of-00002.gguf", "mxfp4", "4 of 4"),
        ("awq", "bf16", "1 of 2"),
        ("gptq-4bit-act-order", "affine-8bit-g64-f32", "1 of 3"),
    ] {
        let report = converts(&bench, model, format);
        assert!(
            report.contains(&format!("tensors  {tensors} converted")),
            "{model} to {format}:\n{report}"
        );
    }
    // The weights of GPTQ are numbers of f32, in W's order.
    for model in ["gptq-4bit-act-order", "gptq-8bit-v2-act-order"] {
        assert!(converts(&bench, model, "f32").contains("0.000%  0.000e0"));
        let name = "model.layers.0.self_attn.q_proj";
        let expected = &bench.tensors(&format!("{model}/expected.safetensors"))
            [&format!("{name}.dequantized")];
        assert_eq!(&bench.tensors("out.safetensors")[&format!("{name}.weight")], expected);
    }
    // In its own format a matrix is copied, with the order of its columns.
    let report = converts(&bench, "gptq-4bit-act-order", "affine-4bit-g32-f32");
    assert!(report.contains("already affine-4bit-g32-f32"), "{report}");
    bench.succeed(
        "qmatmul gptq-4bit-act-order/expected.safetensors#x.64 out.safetensors -o y.npy --adapter \
         cpu",
    );
    let expected = &bench.tensors("gptq-4bit-act-order/expected.safetensors");
    let y = &expected["model.layers.0.self_attn.q_proj.y"];
    assert_close(&bench.read_npy("y.npy").1, y, 1e-5);
}

/// A model: a matrix of numbers that 4 bits hold exactly, a matrix whose K is no whole number of
/// blocks, a vector, and a matrix of random numbers.
fn model(bench: &Bench) {
    let exact: Vec<f32> =
        (0..5 * 128).map(|at| (at * 7 % 16) as f32 * [0.25, 1.0, 4.0][at / 64 % 3]).collect();
    let tensors: [(&str, &[usize], &[f32]); 4] = [
        ("layers.0.exact.weight", &[5, 128], &exact),
        ("layers.0.odd.weight", &[4, 100], &numbers(400, 1)),
        ("layers.0.random.weight", &[3, 192], &numbers(576, 2)),
        ("norm.weight", &[128], &numbers(128, 3)),
    ];
    bench.safetensors("model.safetensors", &tensors);
}

/// Stacks of experts are converted like matrices, and a layer takes them.
#[test]
fn stacks_of_experts() {
    let bench = Bench::new();
    let [e, h, f] = [3, 64, 128];
    let stacks: [(&str, &[usize], Vec<f32>); 4] = [
        ("experts.gate_proj", &[e, f, h], numbers(e * f * h, 1)),
        ("experts.up_proj", &[e, f, h], numbers(e * f * h, 2)),
        ("experts.down_proj", &[e, h, f], numbers(e * h * f, 3)),
        ("experts.odd_proj", &[e, h, 5], numbers(e * h * 5, 4)),
    ];
    let tensors = stacks.each_ref().map(|(name, shape, values)| (*name, *shape, &values[..]));
    bench.safetensors("model.safetensors", &tensors);
    let report = converts(&bench, "model.safetensors", "q8_0");
    assert!(report.contains("tensors  3 of 4 converted"), "{report}");
    assert!(report.contains("K = 5 is not a multiple of 32"), "{report}");
    let model = Model::open(bench.path("out.safetensors")).unwrap();
    assert_eq!(model.get("experts.gate_proj").unwrap().shape(), [e, f, h]);
    bench.npy("x.npy", &[4, h], &numbers(4 * h, 5));
    bench.npy("logits.npy", &[4, e], &numbers(4 * e, 6));
    let weights =
        ["gate", "up", "down"].map(|name| format!("out.safetensors#experts.{name}_proj")).join(" ");
    let line = format!("moe x.npy logits.npy {weights} --top-k 2 -o y.npy --adapter cpu --check");
    assert!(bench.succeed(&line).contains("within the bound"));
    // And back to dense types, none of which needs whole blocks.
    std::fs::rename(bench.path("out.safetensors"), bench.path("q.safetensors")).unwrap();
    let report = converts(&bench, "q.safetensors", "f16");
    assert!(report.contains("tensors  4 of 4 converted"), "{report}");
}

#[test]
fn there_and_back() {
    let bench = Bench::new();
    model(&bench);
    let before = bench.tensors("model.safetensors");
    let report = converts(&bench, "model.safetensors", "affine-4bit-g64-f32");
    assert!(
        report.contains("K = 100 is not a multiple of 64, the block of affine-4bit-g64-f32"),
        "{report}"
    );
    assert!(report.contains("shape [128], not [N,K] or [E,N,K]"), "{report}");
    assert!(report.contains("bits     5.00 per converted weight, 32.00 before"), "{report}");
    std::fs::rename(bench.path("out.safetensors"), bench.path("q.safetensors")).unwrap();
    converts(&bench, "q.safetensors", "f32");
    let after = bench.tensors("out.safetensors");
    let names =
        ["layers.0.exact.weight", "layers.0.odd.weight", "layers.0.random.weight", "norm.weight"];
    assert_eq!(after.keys().collect::<Vec<_>>(), names);
    for name in ["layers.0.exact.weight", "layers.0.odd.weight", "norm.weight"] {
        assert_eq!(after[name], before[name], "{name}");
    }
    assert_ne!(after["layers.0.random.weight"], before["layers.0.random.weight"]);
    // The metadata is kept, without the old format.
    for (file, expected) in
        [("q.safetensors", Some("affine-4bit-g64-f32")), ("out.safetensors", None)]
    {
        let model = Model::open(bench.path(file)).unwrap();
        let metadata: BTreeMap<&str, &str> = model.metadata().collect();
        assert_eq!(
            (metadata.get("format"), metadata.get("quantization").copied()),
            (Some(&"pt"), expected),
            "{file}"
        );
    }
    converts(&bench, "model.safetensors", "bf16");
    assert!(bench.tensors("out.safetensors").keys().eq(before.keys()), "numbers keep their names");
    let q = std::fs::read(bench.path("q.safetensors")).unwrap();
    bench.succeed("convert q.safetensors again.safetensors --format affine-4bit-g64-f32");
    assert_eq!(
        std::fs::read(bench.path("again.safetensors")).unwrap(),
        q,
        "what is in the format is copied"
    );
}

/// A shard is no whole model, but it may be inspected, and its matrices may be multiplied.
#[test]
fn one_shard_of_several() {
    let bench = Bench::new();
    bench.take("mlx-sharded");
    let (shard, split) =
        ("mlx-sharded/model-00001-of-00002.safetensors", "model.layers.0.affine-5bit-g32-f16");
    let others = "this file is shard 1 of 2: open the index, or the folder";
    bench.refuses(
        &format!("convert {shard} o.safetensors --format f16"),
        &[shard, "shard 1 of 2; whole models"],
    );
    let missing = format!("{split}.weight U32");
    bench.refuses(
        &format!("dequantize {shard}#{split}.weight -o o.npy"),
        &[&missing, "are missing", others],
    );
    bench.refuses(&format!("dequantize {shard}#{split} -o o.npy"), &["no tensor is named", others]);
    bench.succeed(&format!("dequantize {shard}#model.layers.0.affine-4bit-g64-f16 -o o.npy"));
    assert!(bench.succeed(&format!("inspect {shard}")).contains("\nshard    1 of 2; "));
    assert!(bench.succeed(&format!("inspect {shard} --json")).contains("\"number\": 1"));
    assert!(!bench.succeed("inspect mlx-sharded").contains("shard    "));
    std::fs::remove_file(bench.path("mlx-sharded/model.safetensors.index.json")).unwrap();
    bench.refuses(
        "convert mlx-sharded p.safetensors --format f16",
        &["model-00001-of-00002.safetensors", "their index"],
    );
}

/// The entry of `config.json` by which MLX opens the file.
#[test]
fn the_entry_of_config_json_is_told() {
    let bench = Bench::new();
    model(&bench);
    for (format, entry) in [
        ("affine-3bit-g128-bf16", Some(r#"{"group_size": 128, "bits": 3, "mode": "affine"}"#)),
        ("mxfp4", Some(r#"{"group_size": 32, "bits": 4, "mode": "mxfp4"}"#)),
        ("mxfp8", Some(r#"{"group_size": 32, "bits": 8, "mode": "mxfp8"}"#)),
        ("nvfp4", Some(r#"{"group_size": 16, "bits": 4, "mode": "nvfp4"}"#)),
        ("q8_0", None),
        ("bf16", None),
    ] {
        std::fs::create_dir(bench.path("out")).unwrap();
        let report = bench
            .succeed(&format!("convert model.safetensors out/model.safetensors --format {format}"));
        let line = report.lines().find(|line| line.starts_with("config   "));
        assert_eq!(line.is_some(), entry.is_some(), "{report}");
        if let Some(entry) = entry {
            assert!(line.unwrap().contains(&format!(r#""quantization": {entry} in "#)), "{report}");
            // With that entry the file's format is known.
            std::fs::write(
                bench.path("out/config.json"),
                format!(r#"{{"quantization": {entry}}}"#),
            )
            .unwrap();
            assert!(bench.succeed("inspect out").contains(&format!(" {format} ")));
        }
        std::fs::remove_dir_all(bench.path("out")).unwrap();
    }
}

/// Rows are converted in strips, of which this matrix has two.
#[test]
fn a_matrix_of_several_strips() {
    let bench = Bench::new();
    let (n, k) = (1030, 4096);
    bench.safetensors("big.safetensors", &[("w.weight", &[n, k], &numbers(n * k, 1))]);
    converts(&bench, "big.safetensors", "affine-4bit-g64-f16");
    std::fs::rename(bench.path("out.safetensors"), bench.path("q.safetensors")).unwrap();
    converts(&bench, "q.safetensors", "f32");

    // An error has the row's number in the matrix. nvfp4 without a factor holds no weights so
    // large.
    let mut weights = vec![1.0; n * k];
    (weights[1027 * k + 20], weights[1028 * k + 7]) = (1e9, f32::NAN);
    bench.safetensors("bad.safetensors", &[("w.weight", &[n, k], &weights)]);
    for (format, part) in [
        ("mxfp8", "bad.safetensors: w.weight: the weight in row 1028, column 7 is NaN"),
        ("nvfp4", "bad.safetensors: w.weight: the block at row 1027, column 16: "),
    ] {
        bench.refuses(
            &format!("convert bad.safetensors new.safetensors --format {format}"),
            &[part],
        );
    }
}

/// Without columns there may be any number of rows, and an order of no columns.
#[test]
fn matrices_without_columns() {
    let bench = Bench::new();
    let format = "affine-4bit-g64-f16".parse().unwrap();
    let ordered = Output::streamed("a", TensorKind::Quantized(format), &[3, 0], |_| Ok(()))
        .with_order(Vec::new());
    let long = Output::dense("b.weight", DType::F32, &[1 << 62, 0], &[]);
    tilewise_files::write(
        bench.path("q.safetensors"),
        vec![ordered, long],
        &BTreeMap::new(),
        &mut |_, _| {},
    )
    .unwrap();
    bench.succeed("convert q.safetensors out.safetensors --format f16");
    let model = Model::open(bench.path("out.safetensors")).unwrap();
    let shapes: Vec<_> = model.tensors().map(|tensor| format!("{tensor:?}")).collect();
    assert_eq!(shapes, ["a.weight f16 [3, 0]", "b.weight f16 [4611686018427387904, 0]"]);
}

/// Planes without a prefix become a tensor without one.
#[test]
fn bare_planes() {
    let bench = Bench::new();
    let quantized = quantize(&numbers(128, 1), 2, 64, "mxfp4".parse().unwrap()).unwrap();
    let outputs = vec![Output::quantized("", &quantized)];
    tilewise_files::write(bench.path("q.safetensors"), outputs, &BTreeMap::new(), &mut |_, _| {})
        .unwrap();
    bench.succeed("convert q.safetensors converted.safetensors --format f32");
    bench.succeed("dequantize q.safetensors -o dequantized.safetensors");
    for file in ["converted.safetensors", "dequantized.safetensors"] {
        assert!(bench.tensors(file).keys().eq(["weight"]), "{file}");
    }
}

/// GGUF may have quantized vectors. In safetensors they are matrices of one row.
#[test]
fn vectors_become_rows() {
    let bench = Bench::new();
    let row = quantize(&numbers(64, 1), 1, 64, "q8_0".parse().unwrap()).unwrap();
    let mut bytes = b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    bytes.extend(
        1u64.to_le_bytes()
            .iter()
            .chain(b"v")
            .chain(&1u32.to_le_bytes())
            .chain(&64u64.to_le_bytes()),
    );
    bytes.extend(8u32.to_le_bytes().iter().chain(&0u64.to_le_bytes()));
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    bytes.extend(row.to_blocks().unwrap());
    std::fs::write(bench.path("v.gguf"), bytes).unwrap();
    for format in ["mxfp8", "f32"] {
        bench.succeed(&format!("convert v.gguf v.safetensors --format {format}"));
        bench.succeed("dequantize v.gguf -o a.npy");
        bench.succeed("inspect v.safetensors");
        let model = Model::open(bench.path("v.safetensors")).unwrap();
        let tensor = model.tensors().next().unwrap();
        assert_eq!(tensor.kind().to_string(), format);
        assert_eq!(tensor.matrix().unwrap(), (1, 64), "{format}");
    }
}

/// Some planes of quantized weights without the other planes are no weights.
#[test]
fn strays_are_kept() {
    let bench = Bench::new();
    let (scales, weights) = (numbers(8 * 32, 1), numbers(8 * 32, 2));
    bench.safetensors(
        "half.safetensors",
        &[
            ("r.scales", &[8, 32], &scales),
            ("r.biases", &[8, 32], &scales),
            ("n.weight", &[8, 32], &weights),
        ],
    );
    let float = [
        ("r.scales", &[8, 32][..], &scales[..]),
        ("r.biases", &[8, 32], &scales),
        ("r.weight", &[8, 32], &weights),
    ];
    bench.safetensors("float.safetensors", &float);
    for line in [
        "half.safetensors out.safetensors --format mxfp8",
        "float.safetensors out.safetensors --format f16",
    ] {
        let report = bench.succeed(&format!("convert {line}"));
        assert!(
            report.contains("1 of 3 converted") && report.contains("the other planes are missing"),
            "{report}"
        );
    }
    let told = "2 tensors have names of planes of quantized weights, and the other planes are \
                missing: r.biases, r.scales\n";
    for line in [
        "inspect float.safetensors",
        "inspect half.safetensors --json",
        "convert float.safetensors o.safetensors --format f32",
    ] {
        let output = bench.run(line);
        assert!(
            output.status.success() && text(&output.stderr).ends_with(told),
            "{line}: {}",
            text(&output.stderr)
        );
    }
    bench.safetensors("stray.safetensors", &[("r.biases", &[8, 32], &scales)]);
    bench.refuses(
        "dequantize stray.safetensors -o w.npy",
        &["stray.safetensors: no matrix is in it"],
    );
    // A name of a file cannot end a line of a table.
    bench.safetensors("lines.safetensors", &[("x\ny", &[2], &[1.0; 2])]);
    assert!(bench.succeed("inspect lines.safetensors").contains("x\\ny"));
}

/// nvfp4 may have a factor of the whole matrix, which counts in products and conversions.
#[test]
fn a_factor_of_the_matrix_counts() {
    let bench = Bench::new();
    let (weights, format) = (numbers(6 * 64, 1), "nvfp4".parse().unwrap());
    let quantized = quantize_to(&weights, 6, 64, format, 1000.0).unwrap();
    let outputs = vec![Output::quantized("a", &quantized)];
    tilewise_files::write(bench.path("q.safetensors"), outputs, &BTreeMap::new(), &mut |_, _| {})
        .unwrap();
    // MLX reads no factor. A format that holds the weights without one has an entry for MLX.
    for (format, line) in [("nvfp4", "none for MLX"), ("mxfp8", "MLX expects")] {
        let report =
            bench.succeed(&format!("convert q.safetensors o.safetensors --format {format}"));
        assert!(report.contains(&format!("\nconfig   {line}")), "{report}");
        assert_eq!(report.contains("MLX expects"), line == "MLX expects", "{report}");
    }
    converts(&bench, "q.safetensors", "f32");
    let expected: Vec<f64> = dequantize(&quantized).into_iter().map(f64::from).collect();
    assert_eq!(bench.tensors("out.safetensors")["a.weight"], expected);
    bench.npy("x.npy", &[2, 64], &numbers(128, 2));
    bench.succeed("qmatmul x.npy q.safetensors -o y.npy --adapter cpu --check");
    bench.succeed("qmatmul x.npy out.safetensors -o z.npy --adapter cpu --check");
    assert_close(&bench.read_npy("y.npy").1, &bench.read_npy("z.npy").1, 1e-5);
}

/// The program counts infinite and NaN weights, before and after. No error that it prints is NaN.
#[test]
fn weights_without_an_error_are_counted() {
    let bench = Bench::new();
    let format = "affine-4bit-g64-f32".parse().unwrap();
    let scales = |of: [f32; 2]| of.iter().flat_map(|scale| scale.to_le_bytes()).collect::<Vec<_>>();
    let already = "64 weights of 1 tensors are infinite or NaN already; no error counts them";
    let beyond = "64 weights of 1 tensors are beyond the range of f16, and became infinite or NaN";
    for (scale, target, warnings, errors) in [
        ([0.5, f32::NAN], "f32", &[already][..], ["0.000%", "0.000e0"]),
        ([0.5, f32::INFINITY], "f16", &[already], ["0.000%", "0.000e0"]),
        ([1e5, f32::NAN], "f16", &[already, beyond], ["inf%", "inf"]),
        ([0.5, 1e5], "f16", &[beyond], ["inf%", "inf"]),
        ([0.5, 0.25], "f16", &[], ["0.000%", "0.000e0"]),
        (
            [f32::NAN, f32::NAN],
            "f32",
            &["128 weights of 1 tensors are infinite or NaN already"],
            ["-", "-"],
        ),
    ] {
        // All codes are 3.
        let planes = vec![vec![0x33; 64], scales(scale), scales([0.0; 2])];
        let weights = Quantized::from_planes(format, 1, 128, planes).unwrap();
        tilewise_files::write(
            bench.path("q.safetensors"),
            vec![Output::quantized("w", &weights)],
            &BTreeMap::new(),
            &mut |_, _| {},
        )
        .unwrap();
        let output = bench.run(&format!("convert q.safetensors out.safetensors --format {target}"));
        let [report, said] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
        assert!(warnings.iter().all(|part| said.contains(part)), "{scale:?}: {said}");
        assert_eq!(said.lines().count(), warnings.len(), "{scale:?}: {said}");
        let line: Vec<&str> = report.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(line[5..], errors, "{scale:?}: {report}");

        let said = bench
            .run(&format!("dequantize q.safetensors -o w.safetensors --dtype {target}"))
            .stderr;
        for warning in warnings {
            let end =
                warning.split_once(" of 1 tensors").unwrap().1.split(" already").next().unwrap();
            let count = warning.split(' ').next().unwrap();
            assert!(
                text(&said).contains(&format!("q.safetensors: {count} weights{end}\n")),
                "{}",
                text(&said)
            );
        }
        assert_eq!(text(&said).lines().count(), warnings.len(), "{scale:?}");
    }
}
