//! Foreign layouts against weights that the packages dequantized: `tests/data/make_layouts.py`.

use crate::support::{Tensor, file, open, refusal, tensor, with_config};
use safetensors::tensor::Dtype::{self, F8_E4M3, F8_E5M2, F16, F32, I32, U8};
use std::collections::BTreeMap;
use std::path::Path;
use tilewise_core::quant::dequantize;
use tilewise_files::{Error, Expected, Model, Output, TensorKind, TensorView, write_to};

/// The weights of a matrix, with its columns in W's order.
fn weights(tensor: &TensorView<'_>) -> Vec<f32> {
    let stored = dequantize(&tensor.quantized().unwrap());
    let Some(order) = tensor.order().unwrap() else { return stored };
    let mut sorted = vec![0.0; stored.len()];
    for (i, weight) in stored.iter().enumerate() {
        sorted[i / order.len() * order.len() + order[i % order.len()] as usize] = *weight;
    }
    sorted
}

/// Compares all matrices of a model with what is expected, and returns their formats.
pub(crate) fn formats(
    folder: &str,
    close: impl Fn(&str, f32, f32) -> bool,
) -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let model = Model::open(&folder).unwrap();
    let expected = Model::open(folder.join("expected.safetensors")).unwrap();
    let mut formats = BTreeMap::new();
    for wide in expected.tensors() {
        let name = wide.name().strip_suffix(".dequantized").unwrap();
        let tensor = model.get(name).unwrap();
        let TensorKind::Quantized(format) = tensor.kind() else { panic!("{name}: {tensor:?}") };
        assert_eq!(tensor.shape(), wide.shape(), "{name}");
        let found = weights(&tensor);
        let wide: Vec<f32> = wide.dense().unwrap().1.chunks_exact(4).map(f32_of).collect();
        for (i, (found, wide)) in found.iter().zip(&wide).enumerate() {
            assert!(close(name, *found, *wide), "{name}, weight {i}: {found:e}, not {wide:e}");
        }
        let rows = tensor.matrix().unwrap().0;
        let part = tensor.rows(3..rows - 2).unwrap();
        let (k, stored) = (part.k(), dequantize(&tensor.quantized().unwrap()));
        assert_eq!(dequantize(&part), stored[3 * k..(rows - 2) * k], "{name}");
        let short = name.strip_prefix("model.layers.0.").unwrap_or(name);
        formats.insert(short.to_owned(), format.to_string());
    }
    // Biases of experts are dense.
    let matrices = || model.tensors().filter(|tensor| !tensor.name().ends_with("_bias"));
    assert_eq!(matrices().count(), formats.len(), "no tensor is left over");
    let mut written = std::io::Cursor::new(Vec::new());
    let outputs = model.tensors().map(|tensor| Output::tensor(&tensor).unwrap()).collect();
    write_to(&mut written, outputs, &BTreeMap::new(), &mut |_, _| {}).unwrap();
    let written = Model::from_bytes("w.safetensors", written.into_inner()).unwrap();
    for tensor in matrices() {
        let again = written.get(tensor.name()).unwrap();
        assert_eq!((again.kind(), again.order()), (tensor.kind(), tensor.order()));
        assert_eq!(again.quantized(), tensor.quantized(), "{}", tensor.name());
    }
    formats
}

fn f32_of(bytes: &[u8]) -> f32 {
    f32::from_le_bytes(bytes.try_into().unwrap())
}

pub(crate) fn check(found: BTreeMap<String, String>, expected: &[(&str, &str)]) {
    let expected: BTreeMap<String, String> =
        expected.iter().map(|(name, format)| (name.to_string(), format.to_string())).collect();
    assert_eq!(found, expected);
}

#[test]
fn compressed_tensors() {
    let is_close = |name: &str, found: f32, wide: f32| match name {
        // Here the scale is multiplied with the factor's reciprocal, there divided by the factor.
        "model.layers.0.nvfp4" => (found - wide).abs() <= wide.abs() * 5.0 * 2f32.powi(-24),
        _ => found.to_bits() == wide.to_bits(),
    };
    check(
        formats("compressed-tensors", is_close),
        &[
            ("w4.group", "affine-4bit-g128-f32"),
            ("w4.group.zeros", "affine-4bit-g32-f32"),
            ("w4.group.f32", "int8-g32"),
            ("w4.group16", "int8-g16"),
            ("w4.channel", "affine-4bit-g32-f32"),
            ("w4.tensor", "affine-4bit-g32-f32"),
            ("w4.act_order", "affine-4bit-g32-f32"),
            ("w2.group", "affine-2bit-g64-f32"),
            ("w3.group", "affine-3bit-g32-f32"),
            ("w5.group", "affine-5bit-g32-f32"),
            ("w6.channel", "affine-6bit-g32-f32"),
            ("w8.group", "int8-g128"),
            ("w8.channel", "affine-8bit-g32-f32"),
            ("int8.channel", "int8-g128"),
            ("int8.channel.zeros", "affine-8bit-g32-f32"),
            ("int8.tensor", "int8-g32"),
            ("int8.group", "int8-g32"),
            ("fp8.tensor", "fp8-e4m3-g32"),
            ("fp8.channel", "fp8-e4m3-g128"),
            ("fp8.block", "fp8-e4m3-g32"),
            ("nvfp4", "nvfp4"),
            ("mxfp4", "mxfp4"),
            ("mxfp8", "mxfp8"),
            ("experts", "affine-4bit-g32-f32"),
        ],
    );
}

#[test]
fn fp8() {
    check(
        formats("fp8", |_, found, wide| found.to_bits() == wide.to_bits()),
        &[
            ("blocks", "fp8-e4m3-g32"),
            ("blocks.bf16", "fp8-e4m3-g128"),
            ("matrix", "fp8-e4m3-g32"),
            ("matrix.one", "fp8-e4m3-g32"),
            ("rows", "fp8-e4m3-g32"),
            ("rows.one", "fp8-e4m3-g128"),
            ("comfy", "fp8-e4m3-g32"),
            ("mistral", "fp8-e4m3-g32"),
            ("e5m2", "fp8-e5m2-g32"),
            ("mxfp8", "mxfp8"),
            ("powers", "fp8-e4m3-g128"),
            ("stack", "fp8-e4m3-g32"),
            ("stack.one", "fp8-e4m3-g32"),
            ("experts.down_proj", "fp8-e4m3-g128"),
        ],
    );
}

/// The tensors of a matrix `w`, by what follows its name.
fn of(tensors: &[(&str, Dtype, &[usize])]) -> Vec<Tensor> {
    let own =
        |(leaf, dtype, shape): &(&str, Dtype, &[usize])| tensor(&format!("w{leaf}"), *dtype, shape);
    tensors.iter().map(own).collect()
}

/// A file of one matrix `w`, and a config's `quantization_config`.
pub(crate) fn one(tensors: &[(&str, Dtype, &[usize])], quantization: &str) -> Model {
    with_config(&of(tensors), &format!(r#"{{"quantization_config":{quantization}}}"#))
}

/// Tensors, what the config says, and words of the error. "unsupported" begins errors of what is
/// sound, but not read.
pub(crate) type Refused<'a> = (&'a [(&'a str, Dtype, &'a [usize])], &'a str, &'a [&'a str]);

pub(crate) fn refuse(cases: &[Refused<'_>]) {
    for (tensors, quantization, words) in cases {
        let text = refusal(&one(tensors, quantization), "w");
        let is_sound = words.contains(&"unsupported");
        assert_eq!(text.starts_with("unsupported: "), is_sound, "{text}");
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
        assert!(text.contains("m.safetensors: \"w\": "), "{text}");
    }
}

#[test]
fn broken_fp8() {
    let (codes, scale) = (".weight", ".weight_scale");
    let inverse = ".weight_scale_inv";
    refuse(&[
        (&[(codes, F8_E4M3, &[4, 64]), (scale, F32, &[5])], "{}", &["[4, 64] have scales [5]"]),
        (&[(codes, F8_E4M3, &[4, 64]), (scale, F32, &[4, 0])], "{}", &["have scales [4, 0]"]),
        (
            &[(codes, F8_E4M3, &[4, 64]), (scale, F32, &[4, 4])],
            "{}",
            &["unsupported", "groups of 16 and K = 64 are not whole blocks of 32, 128"],
        ),
        (
            &[(codes, F8_E4M3, &[4, 48]), (scale, F32, &[])],
            "{}",
            &["unsupported", "K = 48 are not whole blocks"],
        ),
        (
            &[(codes, F8_E4M3, &[4, 64]), (scale, I32, &[4])],
            "{}",
            &["unsupported", "scales in I32 are not read"],
        ),
        (
            &[(codes, F8_E4M3, &[4, 64]), (scale, F32, &[4]), (inverse, F32, &[1, 1])],
            "{}",
            &["several scales of one matrix", "w.weight_scale F32 [4]", "w.weight_scale_inv"],
        ),
        (
            &[(codes, F8_E4M3, &[300, 64]), (inverse, F32, &[2, 1])],
            r#"{"quant_method":"fp8","weight_block_size":[128,128]}"#,
            &["no blocks of [300, 64] have scales [2, 1]"],
        ),
        (
            &[(codes, F8_E4M3, &[192, 256]), (inverse, F32, &[1, 1])],
            r#"{"quant_method":"fp8","weight_block_size":[128,128]}"#,
            &["no blocks of [192, 256] have scales [1, 1]"],
        ),
        (
            &[(codes, F8_E4M3, &[4, 64])],
            r#"{"quant_method":"fp8","weight_block_size":[128,128]}"#,
            &["contradiction: config.json says quant_method \"fp8\", but no scales are there"],
        ),
        (
            &[
                (codes, U8, &[4, 32]),
                (scale, F8_E4M3, &[4, 4]),
                (".weight_scale_2", F32, &[1]),
                (".pre_quant_scale", F32, &[64]),
            ],
            "{}",
            &["unsupported", "w.pre_quant_scale F32 [64]", "scales it, and is not read"],
        ),
    ]);
    // One power of two for rows of one block is no scale of each row.
    let model = one(&[(codes, F8_E4M3, &[3, 1, 32]), (scale, U8, &[1])], "{}");
    assert_eq!(model.get("w").unwrap().quantized().unwrap().n(), 3);
    let noted = |format: &str| {
        let mut tensors = of(&[(codes, F8_E4M3, &[4, 64]), (scale, F32, &[])]);
        let note = format!(r#"{{"format": "{format}"}}"#).into_bytes();
        tensors.push(("w.comfy_quant".into(), U8, vec![note.len()], note));
        with_config(&tensors, "{}")
    };
    assert!(noted("float8_e4m3fn").get("w").unwrap().quantized().is_ok());
    assert!(refusal(&noted("mxfp8"), "w").contains("ComfyUI's format \"mxfp8\" is not read"));
    // Others are listed as they are stored.
    let model = one(&[(codes, F8_E4M3, &[64]), (".conv", F8_E5M2, &[4, 3])], "{}");
    for name in ["w.weight", "w.conv"] {
        assert!(matches!(model.get(name).unwrap().kind(), TensorKind::Other(_)), "{name}");
    }
    for (size, part) in [("[128]", "[128]"), ("[0,128]", "[0,128]"), ("4", "4")] {
        let text = format!(r#"{{"quant_method":"fp8","weight_block_size":{size}}}"#);
        let error = configured(&text);
        let part = format!("weight_block_size is {part}, [rows, columns] is expected");
        assert!(error.contains(&part), "{error}");
    }
}

/// A scale that no program is known to write, or that belongs to X, is not passed over.
#[test]
fn scales_of_any_name() {
    for (codes, scales) in [
        (
            "w.weight",
            &[
                "w.weight_scales",
                "w.scales",
                "w.weight.scale",
                "w.scale_inv",
                "w.weight_scale_2",
                "w.weights_scaling_factor",
                "w.Dequant_Scale",
                "w.w_scale",
                "w.weight_block_scale",
                "w.weight_quantizer._scale",
                "w.weight_quantizer._amax",
                "w.input_quantizer._pre_quant_scale",
                "w.smooth_scale",
            ][..],
        ),
        ("w", &["w_weight_scale", "w.weight_scale", "w_scales"]),
        ("w_weight", &["w_scale", "w_weight_scales"]),
    ] {
        for scale in scales {
            let shape = &[2, 4, 64][usize::from(codes == "w.weight")..];
            let model =
                with_config(&[tensor(codes, F8_E4M3, shape), tensor(scale, F32, &[1])], "{}");
            let text = refusal(&model, codes);
            let words = ["unsupported: ", scale, " scales it, and is not read"];
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
    }
    let shard = file(&[tensor("w.weight", F8_E4M3, &[4, 64])], &[]);
    let config = r#"{"quantization_config":{"quant_method":"fp8"}}"#;
    let shard = ("model-00001-of-00002.safetensors", shard);
    let text = refusal(&open(&[shard, ("config.json", config.into())]).unwrap(), "w");
    assert!(text.contains("no scales are there; this file is shard 1 of 2: open the"), "{text}");
    // Scales of other things, and of other matrices; and e5m2 is f16 without its last byte.
    let mut tensors = of(&[
        (".weight", F8_E5M2, &[4, 128]),
        (".input_scale", F32, &[1]),
        (".k_scale", F32, &[1]),
        (".input_amax", F32, &[1]),
        (".inner.scale", F32, &[1]),
        ("2.weight_scales", F32, &[1]),
    ]);
    tensors[0].3[..4].copy_from_slice(&[0x3c, 0xbc, 0x40, 0]);
    let model = with_config(&tensors, "{}");
    let weights = dequantize(&model.get("w").unwrap().quantized().unwrap());
    assert_eq!(weights[..4], [1.0, -1.0, 2.0, 0.0]);
}

/// The error of a config, which closes a matrix of another program, but nothing else.
pub(crate) fn configured(quantization: &str) -> String {
    let tensors =
        [(".weight", F8_E4M3, &[4, 32][..]), (".weight_scale", F32, &[1]), (".norm", F32, &[4])];
    let model = one(&tensors, quantization);
    assert!(matches!(model.get("w.norm").unwrap().kind(), TensorKind::Dense(_)));
    refusal(&model, "w")
}

/// Every way of AutoRound, and all that is said by both keys of GPTQ.
#[test]
fn names_of_methods() {
    let tensors: &[(&str, Dtype, &[usize])] =
        &[(".qweight", I32, &[8, 16]), (".qzeros", I32, &[1, 2]), (".scales", F16, &[1, 16])];
    let awq: &[(&str, Dtype, &[usize])] =
        &[(".qweight", I32, &[64, 2]), (".qzeros", I32, &[1, 2]), (".scales", F16, &[1, 16])];
    let first = |model: &Model| dequantize(&model.get("w").unwrap().quantized().unwrap())[0];
    let by_mode = |mode: &str| {
        let model = one(tensors, r#"{"quant_method":"exl2"}"#);
        let expected = Expected::default().mode(mode);
        dequantize(&model.get_as("w", &expected).unwrap().quantized().unwrap())[0]
    };
    let versions = [by_mode("gptq"), by_mode("gptq_v2")];
    assert!(versions[0] != versions[1]);
    for (second, quantization) in [
        (0, r#"{"quant_method":"gptq"}"#),
        (0, r#"{"quant_method":"GPTQ","checkpoint_format":"GPTQ"}"#),
        (1, r#"{"quant_method":"gptq","checkpoint_format":"gptq_v2"}"#),
        (1, r#"{"quant_method":"gptq","format":"gptq_v2"}"#),
        (1, r#"{"quant_method":"gptq","checkpoint_format":"GPTQ_V2","format":"gptq_v2"}"#),
        (0, r#"{"quant_method":"gptq","checkpoint_format":1,"bits":"4"}"#),
        (1, r#"{"quant_method":"gptq","checkpoint_format":2}"#),
        (0, r#"{"quant_method":"auto-round","packing_format":"auto_round:auto_gptq"}"#),
        (0, r#"{"quant_method":"auto-round","packing_format":"auto_gptq"}"#),
        (1, r#"{"quant_method":"auto-round","packing_format":"auto_round:gptqmodel"}"#),
        (1, r#"{"quant_method":"intel/auto-round","packing_format":"auto_round"}"#),
    ] {
        assert_eq!(first(&one(tensors, quantization)), versions[second], "{quantization}");
        let config = format!(r#"{{"text_config":{{"quantization_config":{quantization}}}}}"#);
        assert_eq!(first(&with_config(&of(tensors), &config)), versions[second]);
    }
    let rounded = r#"{"quant_method":"auto-round","packing_format":"auto_round:auto_awq"}"#;
    assert_eq!(one(awq, rounded).get("w").unwrap().stored(), "awq");
    let fp8 = r#"{"quant_method":"auto-round","packing_format":"auto_round:fp8"}"#;
    refuse(&[
        (tensors, fp8, &["unsupported", "\"auto-round\" and packing_format \"auto_round:fp8\""]),
        (
            tensors,
            r#"{"quant_method":"auto-round"}"#,
            &["unsupported", "\"auto-round\" and no packing_format, which is not read"],
        ),
        (
            tensors,
            r#"{"quant_method":"exl2"}"#,
            &["unsupported", "quant_method \"exl2\"", "name the mode: gptq, gptq_v2, awq"],
        ),
        (
            tensors,
            r#"{"quant_method":"gptq","checkpoint_format":3}"#,
            &["unsupported", "\"gptq\" and checkpoint_format 3"],
        ),
        (
            tensors,
            r#"{"quant_method":"gptq","checkpoint_format":"marlin"}"#,
            &["unsupported", "\"gptq\" and checkpoint_format \"marlin\""],
        ),
        (
            awq,
            r#"{"quant_method":"awq","version":"marlin"}"#,
            &["unsupported", "\"awq\" and version \"marlin\", which is not read"],
        ),
        (
            awq,
            r#"{"quant_method":"awq","format":"llm-awq"}"#,
            &["unsupported", "\"awq\" and format \"llm-awq\", which is not read"],
        ),
        (
            awq,
            r#"{"quant_method":"awq","format":"gemv_fast"}"#,
            &["contradiction: config.json says AWQ-GEMV-FAST, but the shapes are those of AWQ"],
        ),
    ]);
}

/// Symmetric weights have the middle of the codes as their zero, stored less 1 by version 1.
#[test]
fn symmetric_zeros_tell_the_version() {
    let mut tensors =
        of(&[(".qweight", I32, &[8, 16]), (".qzeros", I32, &[1, 2]), (".scales", F16, &[1, 16])]);
    let config = |version: &str, symmetric: bool| {
        format!(
            r#"{{"quantization_config":{{"quant_method":"gptq","sym":{symmetric},
            "checkpoint_format":"{version}"}}}}"#
        )
    };
    for (stored, right, wrong) in [(0x77u8, "gptq", "gptq_v2"), (0x88, "gptq_v2", "gptq")] {
        tensors[1].3.fill(stored);
        assert!(with_config(&tensors, &config(right, true)).get("w").unwrap().quantized().is_ok());
        let model = with_config(&tensors, &config(wrong, true));
        let text = refusal(&model, "w");
        let parts =
            ["name the mode, gptq", "gptq_v2", "or change checkpoint_format in config.json"];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        for mode in [right, wrong] {
            assert!(model.get_as("w", &Expected::default().mode(mode)).is_ok(), "{mode}");
        }
        assert!(with_config(&tensors, &config(wrong, false)).get("w").unwrap().sizes().is_ok());
        // Every zero is compared, when it is read.
        let mut tensors = of(&[
            (".qweight", I32, &[16, 16]),
            (".qzeros", I32, &[2, 2]),
            (".scales", F16, &[2, 16]),
        ]);
        tensors[1].3.fill(stored);
        tensors[1].3[15] ^= 0x10;
        let model = with_config(&tensors, &config(right, true));
        let error = model.get("w").unwrap().quantized().unwrap_err().to_string();
        assert!(error.contains("that of row 15 and group 1 is stored as "), "{error}");
        assert!(model.get("w").unwrap().rows(0..15).is_ok());
    }
}

/// Codes are no numbers: the error says whose they are.
#[test]
fn codes_that_are_not_read_name_their_method() {
    for (name, dtype, quantization, words) in [
        (
            "w.weight_packed",
            I32,
            "{}",
            "codes of compressed-tensors, whose weight_scale is missing",
        ),
        ("w.qweight", I32, "{}", "codes of gptq, whose qzeros, scales is missing"),
        ("e.down_proj_blocks", U8, "{}", "codes of gpt-oss, whose _scales is missing"),
        ("w.W_q", U8, "{}", "codes of hqq, whose scale, zero is missing"),
        (
            "w.weight",
            U8,
            r#"{"quant_method":"exl9"}"#,
            "is of type U8, and config.json says quant_method \"exl9\", which is not read",
        ),
    ] {
        let tensors = [tensor(name, dtype, &[4, 16])];
        let config = format!(r#"{{"quantization_config":{quantization}}}"#);
        let model = with_config(&tensors, &config);
        let view = model.get(name).unwrap();
        let errors = [
            view.dense().unwrap_err(),
            view.quantized().unwrap_err(),
            model.get_as(name, &Expected::default().bits(4)).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, Error::Unsupported(_)), "{name}: {error}");
            assert!(error.to_string().contains(words), "{error}");
        }
        assert_eq!(
            model.unread_quantization().is_some(),
            quantization != "{}",
            "{:?}",
            model.unread_quantization()
        );
    }
    // Names of codes may tell more than the formats that have one.
    let model = one(&[(".codes", I32, &[4, 16]), (".codebooks", F16, &[1, 256])], "{}");
    let error = model.get("w").unwrap_err().to_string();
    assert!(error.contains("w.codebooks belongs to AQLM, whose layout is not read"), "{error}");
}
