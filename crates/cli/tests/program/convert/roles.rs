//! `tilewise convert` quantizes what layers, embeddings and experts hold, and keeps the rest.

use crate::bench::{Bench, numbers};
use safetensors::tensor::{Dtype, TensorView};
use std::collections::BTreeMap;
use tilewise_files::{Model, TensorKind};

/// Tensors of Mamba, GPT-OSS, DeepSeek and vision models: name, shape, and the class that is kept.
const TENSORS: [(&str, &[usize], Option<&str>); 20] = [
    ("model.embed_tokens.weight", &[8, 128], None),
    ("model.layers.0.self_attn.q_proj.weight", &[8, 128], None),
    ("model.layers.0.mlp.experts.gate_up_proj", &[2, 8, 128], None),
    ("model.layers.0.mlp.switch_mlp.up_proj.weight", &[2, 8, 128], None),
    ("backbone.layers.0.mixer.in_proj.weight", &[8, 128], None),
    ("model.layers.0.mlp.experts.gate_up_proj_bias", &[2, 128], Some("biases")),
    ("model.layers.0.mlp.switch_mlp.up_proj.bias", &[2, 128], Some("biases")),
    ("relative_bias", &[8, 128], Some("biases")),
    ("model.layers.0.mlp.down_proj.input_scale", &[8, 128], Some("scales")),
    ("backbone.layers.0.mixer.A_log", &[8, 128], Some("others by name")),
    ("backbone.layers.0.mixer.D", &[8, 128], Some("others by name")),
    ("backbone.layers.0.mixer.dt_bias", &[8, 128], Some("biases")),
    ("backbone.layers.0.mixer.conv1d.weight", &[8, 1, 128], Some("single rows")),
    ("encoder.conv1.weight", &[8, 4, 128], Some("convolutions")),
    ("cls_token", &[1, 1, 128], Some("single rows")),
    ("pos_embed", &[1, 8, 128], Some("others by name")),
    ("embeddings.position_embeddings.weight", &[8, 128], Some("positions")),
    ("model.layers.0.mlp.gate.weight", &[8, 128], Some("routers")),
    ("model.layers.0.q_norm.weight", &[8, 128], Some("norms")),
    ("model.norm.weight", &[128], Some("vectors")),
];

fn model(bench: &Bench) -> BTreeMap<&'static str, Vec<f32>> {
    let values: BTreeMap<_, _> = TENSORS
        .iter()
        .zip(1..)
        .map(|((name, shape, _), seed)| (*name, numbers(shape.iter().product(), seed)))
        .collect();
    let tensors: Vec<_> =
        TENSORS.iter().map(|(name, shape, _)| (*name, *shape, &values[name][..])).collect();
    bench.safetensors("m.safetensors", &tensors);
    values
}

#[test]
fn by_name_and_shape() {
    let bench = Bench::new();
    let values = model(&bench);
    for format in ["affine-4bit-g64-f16", "mxfp8", "f16"] {
        let report =
            bench.succeed(&format!("convert m.safetensors o.safetensors --format {format}"));
        let kept = "kept     biases 4, convolutions 1, norms 1, others by name 3, positions 1, \
                    routers 1, scales 1, single rows 2, vectors 1\n";
        assert!(report.contains("tensors  5 of 20 converted, the others kept\n"), "{report}");
        assert!(report.contains(kept), "{report}");
        let out = Model::open(bench.path("o.safetensors")).unwrap();
        for (name, shape, class) in TENSORS {
            let tensor = out.get(name).unwrap();
            match class {
                None => {
                    assert_eq!((tensor.kind().to_string(), tensor.shape()), (format.into(), shape))
                }
                Some(_) => {
                    let bytes: Vec<u8> =
                        values[name].iter().flat_map(|x| x.to_le_bytes()).collect();
                    assert_eq!((tensor.dense().unwrap().1, tensor.shape()), (&bytes[..], shape));
                }
            }
        }
    }
    for (text, converted) in [
        ("A_log", 1),
        ("mlp.gate", 1),
        ("mlp.gate.weight", 1),
        ("mixer.D", 1),
        // These select, but name no tensor's end.
        ("backbone.layers.0", 1),
        ("weight", 4),
    ] {
        let line = format!("convert m.safetensors o.safetensors --format mxfp4 --only {text}");
        let report = bench.succeed(&line);
        assert!(report.contains(&format!("tensors  {converted} of 20")), "{line}: {report}");
    }
    bench.safetensors("c.safetensors", &[("c", &[2, 64], &numbers(128, 1))]);
    bench.refuses(
        "convert c.safetensors o.safetensors --format mxfp4",
        &["c: by its name no weight of a linear layer", "; --only c overrules the name"],
    );
    bench.succeed("convert c.safetensors o.safetensors --format mxfp4 --only c");
}

/// Codes of another quantization, kept for their type, are not mixed with new ones.
#[test]
fn two_quantizations_are_not_mixed() {
    let bench = Bench::new();
    let (weights, scales) = ([1u8; 16 * 64], [0u8; 4 * 2]);
    let plain = [0u8; 4 * 8 * 64];
    let codes = TensorView::new(Dtype::I8, vec![16, 64], &weights).unwrap();
    let scale = TensorView::new(Dtype::F32, vec![1, 2], &scales).unwrap();
    let dense = TensorView::new(Dtype::F32, vec![8, 64], &plain).unwrap();
    let put = |names: [&str; 2]| {
        let tensors = [(names[0], &codes), (names[1], &scale), ("l.down.weight", &dense)];
        let bytes = safetensors::serialize(tensors, None).unwrap();
        std::fs::write(bench.path("m.safetensors"), bytes).unwrap();
    };
    for names in [["l.up.weight", "l.up.input_scale"], ["l.up.W_q", "l.up.scale"]] {
        put(names);
        let line = "convert m.safetensors o.safetensors --format mxfp4";
        let scales = format!("{} its scales", names[1]);
        let except = format!("--except {}", names[0]);
        bench.refuses(line, &[names[0], "I8", &scales, "mix two quantizations", &except]);
        for option in [&*except, "--skip l.up", "--only l.down"] {
            assert!(bench.succeed(&format!("{line} {option}")).contains("1 of 3 converted"));
        }
    }
    // Numbers are no second quantization.
    bench.succeed("convert m.safetensors o.safetensors --format f16");
    // Integers without scales are no codes.
    put(["l.position_ids", "l.up.scale"]);
    let report = bench.succeed("convert m.safetensors o.safetensors --format mxfp4");
    assert!(report.contains("kept     other types 1, scales 1\n"), "{report}");
    // By their names these are no pair, but config.json names the method.
    for (method, names) in [
        ("quanto", ["l.up.weight._data", "l.up.weight._scale"]),
        ("aqlm", ["l.up.codes", "l.up.codebooks"]),
        ("exl3", ["l.up.trellis", "l.up.suh"]),
        ("vptq", ["l.up.indices", "l.up.centroids.weight"]),
    ] {
        put(names);
        let config = format!(r#"{{"quantization_config":{{"quant_method":"{method}"}}}}"#);
        std::fs::write(bench.path("config.json"), config).unwrap();
        let said = format!("config.json says quant_method \"{method}\", which is not read");
        let line = "convert m.safetensors o.safetensors --format mxfp4";
        bench.refuses(line, &[&said, "mix two quantizations", "--only l.down.weight\n"]);
        let report = bench.succeed(&format!("{line} --only l.down.weight"));
        assert!(report.contains("1 of 3 converted"), "{method}: {report}");
        bench.succeed("convert m.safetensors o.safetensors --format f16");
    }
}

/// Models of some types store matrices with K before N, which have no blocks along K.
#[test]
fn transposed_matrices_are_kept() {
    let bench = Bench::new();
    let values = numbers(2 * 64 * 128, 1);
    let [experts, c_attn] = ["model.layers.0.mlp.experts.down_proj", "h.0.attn.c_attn.weight"];
    let tensors: [(&str, &[usize], &[f32]); 3] = [
        (experts, &[2, 64, 128], &values),
        (c_attn, &[64, 128], &values[..64 * 128]),
        ("wte.weight", &[64, 128], &values[..64 * 128]),
    ];
    bench.safetensors("m.safetensors", &tensors);
    for (model_type, kept) in [
        ("gpt_oss", Some(experts)),
        ("llama4", Some(experts)),
        ("qwen3_vl_moe", Some(experts)),
        ("gpt2", Some(c_attn)),
        ("qwen3_moe", None),
    ] {
        let config = format!(r#"{{"model_type":"{model_type}"}}"#);
        std::fs::write(bench.path("config.json"), config).unwrap();
        let line = |options| format!("convert m.safetensors o.safetensors --format {options}");
        let report = bench.succeed(&line("mxfp4"));
        let why = format!("transposed: {model_type} stores K before N");
        let rows: Vec<&str> = report.lines().filter(|line| line.contains(&why)).collect();
        let names = rows.iter().map(|row| row.split(' ').next().unwrap());
        assert!(names.eq(kept), "{report}");
        assert_eq!(report.contains("kept     transposed 1\n"), kept.is_some(), "{report}");
        // A dense type is allowed: transposed weights are only converted.
        assert!(bench.succeed(&line("f16")).contains("3 of 3 converted"));
        if let Some(name) = kept {
            let report = bench.succeed(&line(&format!("mxfp4 --only {name}")));
            assert!(report.contains("1 of 3 converted"), "{report}");
        }
    }
}

/// GGUF's metadata is kept, with a tokenizer's arrays, and can be read back.
#[test]
fn arrays_of_gguf_are_kept() {
    let bench = Bench::new();
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let tokens = ["<unk>", "\u{120}a\"b\\", "\n"];
    let array = |kind: u32, count: u64, bytes: Vec<u8>| {
        [&kind.to_le_bytes()[..], &count.to_le_bytes(), &bytes].concat()
    };
    let scores: Vec<u8> =
        [0.1f32, f32::NEG_INFINITY, -1e10].iter().flat_map(|x| x.to_le_bytes()).collect();
    let entries = [
        ("general.architecture", 8u32, text("llama")),
        ("tokenizer.ggml.tokens", 9, array(8, 3, tokens.map(text).concat())),
        ("tokenizer.ggml.scores", 9, array(6, 3, scores)),
        (
            "tokenizer.ggml.token_type",
            9,
            array(5, 2, [1i32, -3].iter().flat_map(|x| x.to_le_bytes()).collect()),
        ),
        ("tokenizer.ggml.bos_token_id", 4, 7u32.to_le_bytes().to_vec()),
        ("tokenizer.ggml.add_bos_token", 7, vec![1]),
    ];
    let mut bytes = b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0".to_vec();
    bytes.extend((entries.len() as u64).to_le_bytes());
    for (key, kind, value) in entries {
        bytes.extend([text(key), kind.to_le_bytes().to_vec(), value].concat());
    }
    bytes.extend(text("token_embd.weight"));
    bytes.extend(2u32.to_le_bytes());
    bytes.extend([64u64, 2].iter().flat_map(|x| x.to_le_bytes()));
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(0u64.to_le_bytes());
    bytes.resize(bytes.len().next_multiple_of(32) + 4 * 128, 0);
    std::fs::write(bench.path("m.gguf"), bytes).unwrap();

    let output = bench.run("convert m.gguf o.safetensors --format mxfp4");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let out = Model::open(bench.path("o.safetensors")).unwrap();
    assert!(matches!(out.tensors().next().unwrap().kind(), TensorKind::Quantized(_)));
    let kept: BTreeMap<&str, &str> = out.metadata().collect();
    let json = |key: &str| serde_json::from_str::<serde_json::Value>(kept[key]).unwrap();
    assert_eq!(json("tokenizer.ggml.tokens"), serde_json::json!(tokens));
    assert_eq!(kept["tokenizer.ggml.scores"], r#"[0.1,"-inf",-10000000000.0]"#);
    assert_eq!(json("tokenizer.ggml.token_type"), serde_json::json!([1, -3]));
    assert_eq!(kept["tokenizer.ggml.bos_token_id"], "7");
    assert_eq!(kept["tokenizer.ggml.add_bos_token"], "true");
    assert_eq!(kept["general.architecture"], "llama");
}
