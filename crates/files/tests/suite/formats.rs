//! Formats of tensors: by the file's metadata, `config.json`, arguments, or shapes.

use crate::support::{Tensor, file, open, refusal, tensor, with_config};
use safetensors::tensor::Dtype::{self, BF16, F8_E4M3, F16, F32, I32, I64, U8, U32};
use tilewise_files::{Error, Expected, TensorKind};

/// An affine matrix of [n, k].
fn affine(
    prefix: &str,
    bits: usize,
    group: usize,
    scales: Dtype,
    leading: &[usize],
    k: usize,
) -> Vec<Tensor> {
    let plane = |leaf: &str, dtype, columns: usize| {
        tensor(&format!("{prefix}.{leaf}"), dtype, &[leading, &[columns]].concat())
    };
    let groups = k / group;
    vec![
        plane("weight", U32, k * bits / 32),
        plane("scales", scales, groups),
        plane("biases", scales, groups),
    ]
}

fn kind(name: &str) -> TensorKind {
    TensorKind::Quantized(name.parse().unwrap())
}

#[test]
fn tensors_are_listed_in_the_order_of_their_numbers() {
    let mut tensors = affine("l.10.w", 4, 64, F16, &[3], 128);
    tensors.extend(affine("l.9.w", 4, 64, F16, &[2, 3], 128));
    tensors.extend([
        tensor("l.9.w.bias", F16, &[3]),
        tensor("n.weight", BF16, &[4]),
        tensor("ids", I64, &[2]),
    ]);
    tensors.push(tensor("weight", F32, &[1]));
    let model = with_config(&tensors, r#"{"quantization":{"group_size":64,"bits":4}}"#);
    let listed: Vec<_> = model.tensors().map(|tensor| format!("{tensor:?}")).collect();
    assert_eq!(
        listed,
        [
            "ids I64 [2]",
            "l.9.w affine-4bit-g64-f16 [2, 3, 128]",
            "l.9.w.bias f16 [3]",
            "l.10.w affine-4bit-g64-f16 [3, 128]",
            "n.weight bf16 [4]",
            "weight f32 [1]",
        ]
    );
    for (name, found) in [
        ("l.10.w", "l.10.w"),
        ("l.10.w.weight", "l.10.w"),
        ("l.10.w.biases", "l.10.w"),
        ("n.weight", "n.weight"),
    ] {
        assert_eq!(model.get(name).unwrap().name(), found);
    }
    let text = model.get("l.10.v").unwrap_err().to_string();
    assert!(
        text.contains(
            "m.safetensors: no tensor is named \"l.10.v\"; the nearest of 6 are \
             \"l.10.w\""
        ),
        "{text}"
    );
    let stack = model.get("l.9.w").unwrap();
    assert_eq!((stack.matrix().unwrap(), stack.sizes().unwrap()), ((6, 128), vec![384, 24, 24]));
    assert_eq!(stack.quantized().unwrap().planes()[1], tensors[4].3);
    assert_eq!(stack.stored_bytes(), 384 + 24 + 24);
    assert!(
        model
            .get("ids")
            .unwrap()
            .dense()
            .unwrap_err()
            .to_string()
            .ends_with("ids is of type I64, which is not read; F32, F16, BF16, I32, U32 are")
    );
    assert!(stack.dense().is_err() && model.get("n.weight").unwrap().quantized().is_err());
    assert_eq!(model.get("n.weight").unwrap().dense().unwrap().1, tensors[7].3);
}

#[test]
fn shapes_that_fit_several_formats_need_a_word() {
    // 8 bits in groups of 32, or 4 bits in groups of 64 with twice the K.
    let tensors = affine("w", 4, 64, F16, &[3], 128);
    let unsaid = open(&[("m.safetensors", file(&tensors, &[]))]).unwrap();
    let text = refusal(&unsaid, "w");
    assert!(
        text.contains("affine-4bit-g64-f16 [3, 128]")
            && text.contains(" or affine-8bit-g32-f16 [3, 64]"),
        "{text}"
    );
    assert!(
        text.starts_with("m.safetensors: \"w\": it may be ")
            && matches!(unsaid.get("w").unwrap().kind(), TensorKind::Unclear(Error::Misuse(_)))
    );
    let expect =
        |expected: Expected| unsaid.get_as("w", &expected).map(|tensor| tensor.kind().clone());
    let bits = |bits| Expected::default().bits(bits);
    assert_eq!(expect(bits(8)), Ok(kind("affine-8bit-g32-f16")));
    assert_eq!(expect(bits(4).group(64)), Ok(kind("affine-4bit-g64-f16")));
    assert_eq!(
        expect("affine-4bit-g64-f16".parse::<tilewise_core::QuantFormat>().unwrap().into()),
        Ok(kind("affine-4bit-g64-f16"))
    );
    let text = expect(Expected::default().mode("mxfp4")).unwrap_err().to_string();
    assert!(
        text.contains("not mode mxfp4 (the arguments)")
            && text.contains("w.weight U32 [3, 16] at byte "),
        "{text}"
    );
    for (source, model) in [
        (
            "metadata",
            open(&[("m.safetensors", file(&tensors, &[("quantization", "affine-8bit-g32-f16")]))])
                .unwrap(),
        ),
        (
            "of this",
            open(&[(
                "m.safetensors",
                file(
                    &tensors,
                    &[("w.quantization", "affine-8bit-g32-f16"), ("quantization", "q8_0")],
                ),
            )])
            .unwrap(),
        ),
        (
            "config",
            with_config(&tensors, r#"{"quantization":{"group_size":32,"bits":8,"mode":"affine"}}"#),
        ),
        (
            "other key",
            with_config(&tensors, r#"{"quantization_config":{"group_size":32,"bits":8}}"#),
        ),
        (
            "layer",
            with_config(
                &tensors,
                r#"{"quantization":{"group_size":64,"bits":4,"w":{"group_size":32,"bits":8}}}"#,
            ),
        ),
    ] {
        assert_eq!(*model.get("w").unwrap().kind(), kind("affine-8bit-g32-f16"), "{source}");
        let text = model.get_as("w", &bits(4)).unwrap_err().to_string();
        assert!(
            text.contains("contradiction: ")
                && text.contains("the arguments: 4 bits; ")
                && text.contains('8'),
            "{source}: {text}"
        );
    }
}

#[test]
fn contradictions_name_both() {
    let tensors = affine("w", 4, 64, F16, &[3], 128);
    let both = |metadata: &str, config: &str| {
        let files = [
            ("m.safetensors", file(&tensors, &[("quantization", metadata)])),
            ("config.json", config.into()),
        ];
        refusal(&open(&files).unwrap(), "w")
    };
    let text = both("affine-4bit-g64-f16", r#"{"quantization":{"group_size":32,"bits":8}}"#);
    let expected = "the metadata of m.safetensors: affine-4bit-g64-f16; config.json \
                    (quantization): 8 bits, groups of 32, mode affine";
    assert!(text.contains(expected), "{text}");
    let text = refusal(
        &with_config(&tensors, r#"{"quantization":{"group_size":64,"bits":4,"mode":"mxfp4"}}"#),
        "w",
    );
    assert!(
        text.contains("4 bits, groups of 64, mode mxfp4 (config.json (quantization))"),
        "{text}"
    );
    let text = refusal(
        &with_config(&tensors, r#"{"quantization":{"group_size":64,"bits":4,"w":false}}"#),
        "w",
    );
    assert!(text.contains("\"w\" is not quantized, but the file"), "{text}");
    // Another program's entry under the same key is no claim if there are other claims.
    let other = [
        ("m.safetensors", file(&tensors, &[("quantization", "int4")])),
        ("config.json", r#"{"quantization":{"bits":4}}"#.into()),
    ];
    assert_eq!(*open(&other).unwrap().get("w").unwrap().kind(), kind("affine-4bit-g64-f16"));
    let text = refusal(&open(&other[..1]).unwrap(), "w");
    assert!(text.contains("no format is named \"int4\""), "{text}");
}

#[test]
fn planes_that_do_not_belong_together_are_listed() {
    let check = |tensors: &[Tensor], expected: &[&str]| {
        let text = refusal(&open(&[("m.safetensors", file(tensors, &[]))]).unwrap(), "w");
        assert!(expected.iter().all(|part| text.contains(part)), "{text}");
    };
    let mut more = vec![
        tensor("w.weight", U32, &[3, 16]),
        tensor("w.scales", U8, &[3, 4]),
        tensor("w.biases", U8, &[3, 4]),
    ];
    check(
        &more,
        &[
            "any quantized format",
            "w.biases U8 [3, 4]",
            "w.scales U8 [3, 4]",
            "w.weight U32 [3, 16]",
        ],
    );
    more.pop();
    let model = open(&[("m.safetensors", file(&more, &[]))]).unwrap();
    assert_eq!(*model.get("w").unwrap().kind(), kind("mxfp4"));
    let mut uneven = affine("w", 4, 64, F16, &[3], 128);
    uneven[2] = tensor("w.biases", F16, &[2, 2]);
    check(&uneven, &["w.biases F16 [2, 2]"]);
    uneven[2] = tensor("w.biases", BF16, &[3, 2]);
    check(&uneven, &["w.biases BF16 [3, 2]", "w.scales F16 [3, 2]"]);
    let mut rough = affine("w", 4, 64, F16, &[3], 128);
    rough[0] = tensor("w.weight", U32, &[3, 15]);
    check(&rough, &["w.weight U32 [3, 15]"]);
    // A plane that only one of two families has.
    let lacks = affine("w", 4, 64, F16, &[3], 128)[..2].to_vec();
    check(
        &lacks,
        &[
            "not any quantized format: w.scales F16 [3, 2] at",
            "w.weight U32 [3, 16] at",
            "; w.biases is missing",
        ],
    );
    let model = open(&[("m.safetensors", file(&lacks, &[]))]).unwrap();
    let group = Expected::default().group(32);
    let text = model.get_as("w", &group).unwrap_err().to_string();
    assert!(text.contains("no tensor \"w.biases\"") && !text.contains("codes"), "{text}");
    let four = "affine-4bit-g64-f16".parse::<tilewise_core::QuantFormat>().unwrap();
    for (weight, scales, biases) in [
        ((U32, &[1, 3, 16][..]), (F16, &[3, 2][..]), (F16, &[3, 2][..])),
        ((U32, &[3, 12]), (F16, &[3, 2]), (F16, &[3, 2])),
        ((U32, &[3, 16]), (F16, &[3, 4]), (F16, &[3, 4])),
        ((U32, &[3, 16]), (F16, &[2, 2]), (F16, &[2, 2])),
        ((U32, &[3, 16]), (F16, &[3, 2]), (F16, &[2, 3])),
        ((U32, &[3, 16]), (F16, &[3, 2]), (F32, &[3, 2])),
        ((U32, &[3, 16]), (Dtype::I32, &[3, 2]), (Dtype::I32, &[3, 2])),
    ] {
        let planes = [("w.weight", weight), ("w.scales", scales), ("w.biases", biases)];
        let tensors = planes.map(|(name, (dtype, shape))| tensor(name, dtype, shape));
        let model = open(&[("m.safetensors", file(&tensors, &[]))]).unwrap();
        let text = model.get_as("w", &four.into()).unwrap_err().to_string();
        assert!(
            text.contains("not affine-4bit-g64-f16 (the arguments): ") && text.contains("w.scales"),
            "{text}"
        );
    }
}

#[test]
fn parts_of_no_matrix_are_tensors_of_their_own() {
    let tensors = [
        tensor("a.weight", F16, &[2, 2]),
        tensor("a.scales", F32, &[1]),
        tensor("b.scales", U8, &[4]),
    ];
    let model = open(&[("m.safetensors", file(&tensors, &[]))]).unwrap();
    let names: Vec<_> = model.tensors().map(|tensor| tensor.name().to_owned()).collect();
    assert_eq!(names, ["a.scales", "a.weight", "b.scales"]);
    // A tensor with the name of a prefix.
    let mut tensors = affine("a", 4, 64, F32, &[1], 64);
    tensors.push(tensor("a", F32, &[7]));
    let model =
        open(&[("m.safetensors", file(&tensors, &[("quantization", "affine-4bit-g64-f32")]))])
            .unwrap();
    assert_eq!(model.get("a").unwrap().shape(), [7]);
    assert_eq!(model.get("a.weight").unwrap().shape(), [1, 64]);
    assert_eq!(model.get("a.scales").unwrap().name(), "a.weight");
}

#[test]
fn an_order_of_columns_belongs_to_its_matrix() {
    let mut tensors = affine("w", 4, 64, F16, &[3], 64);
    tensors.push((
        "w.order".into(),
        U32,
        vec![64],
        (0..64u32).rev().flat_map(u32::to_le_bytes).collect(),
    ));
    let opened = |tensors: &[Tensor]| {
        open(&[("m.safetensors", file(tensors, &[("quantization", "affine-4bit-g64-f16")]))])
            .unwrap()
    };
    let model = opened(&tensors);
    assert_eq!(model.tensors().len(), 1);
    assert_eq!(
        model.get("w").unwrap().order().unwrap().unwrap(),
        (0..64).rev().collect::<Vec<u32>>()
    );
    tensors[3].3[..4].fill(0);
    let text = opened(&tensors).get("w").unwrap().order().unwrap_err().to_string();
    // It is the first tensor after the header.
    let bytes = file(&tensors, &[("quantization", "affine-4bit-g64-f16")]);
    let at = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) + 63 * 4;
    let expected = format!("w.order at byte {at}: column 0 is there twice, or is not below 64");
    assert!(text.contains(&expected), "{text}");
    tensors[3] = tensor("w.order", U32, &[32]);
    let text = refusal(&opened(&tensors), "w");
    assert!(
        text.contains("w.order U32 [32] at byte ") && text.ends_with("; U32 [64] is expected"),
        "{text}"
    );
}

#[test]
fn a_factor_belongs_to_its_matrix() {
    let one =
        |name: &str, value: f32| (name.to_owned(), F32, vec![1], value.to_le_bytes().to_vec());
    let mut tensors = vec![tensor("w.weight", U32, &[3, 4]), tensor("w.scales", U8, &[3, 2])];
    tensors.push(one("w.global_scale", 1344.0));
    let opened = |tensors: &[Tensor]| open(&[("m.safetensors", file(tensors, &[]))]).unwrap();
    let model = opened(&tensors);
    assert_eq!((model.tensors().len(), model.get("w").unwrap().factor()), (1, Some(0.5)));
    assert_eq!(model.get("w").unwrap().quantized().unwrap().factor(), 0.5);
    tensors[2] = one("w.weight_scale_2", 0.5);
    assert_eq!(opened(&tensors).get("w").unwrap().quantized(), model.get("w").unwrap().quantized());
    tensors[2] = one("w.global_scale", f32::NAN);
    let refused = |tensors: &[Tensor], end: &str| {
        let text = refusal(&opened(tensors), "w");
        assert!(
            text.contains("w.global_scale F32 [")
                && text.contains("] at byte ")
                && text.ends_with(end),
            "{text}"
        );
    };
    refused(&tensors, " is NaN");
    tensors[2] = tensor("w.global_scale", F32, &[3]);
    refused(&tensors, "; one F32 is expected");
    tensors[1] = tensor("w.scales", U8, &[3, 1]);
    refused(&tensors, ": mxfp4 has no factor for a whole matrix");
}

#[test]
fn model_opt_is_nvfp4_under_other_names() {
    let mut tensors =
        vec![tensor("w.weight", U8, &[3, 16]), tensor("w.weight_scale", F8_E4M3, &[3, 2])];
    tensors.push(("w.weight_scale_2".into(), F32, vec![], 0.25f32.to_le_bytes().to_vec()));
    tensors.push(tensor("w.input_scale", F32, &[]));
    let model = open(&[("m.safetensors", file(&tensors, &[]))]).unwrap();
    let matrix = model.get("w").unwrap();
    assert_eq!(
        (matrix.kind(), matrix.shape(), matrix.factor()),
        (&kind("nvfp4"), &[3, 32][..], Some(0.25))
    );
    assert_eq!(matrix.quantized().unwrap().planes(), [tensors[0].3.clone(), tensors[1].3.clone()]);
    tensors[1] = tensor("w.weight_scale", F8_E4M3, &[3, 3]);
    let model = open(&[("m.safetensors", file(&tensors, &[]))]).unwrap();
    let text = refusal(&model, "w");
    assert!(
        text.contains("w.weight U8 [3, 16] at")
            && text.contains("w.weight_scale F8_E4M3 [3, 3] at"),
        "{text}"
    );
}

/// A config that cannot be read closes what needs it, and nothing else.
#[test]
fn configurations_that_lie_close_what_needs_them() {
    // One format fits these planes, two fit those, and GPTQ has two versions of one shape.
    let tensors = [
        tensor("n", F32, &[1]),
        tensor("one.weight", U32, &[2, 16]),
        tensor("one.scales", U8, &[2, 4]),
        tensor("two.weight", U32, &[3, 16]),
        tensor("two.scales", F16, &[3, 2]),
        tensor("two.biases", F16, &[3, 2]),
        tensor("g.qweight", I32, &[8, 8]),
        tensor("g.qzeros", I32, &[1, 1]),
        tensor("g.scales", F16, &[1, 8]),
    ];
    let free = |model: &tilewise_files::Model| {
        let kinds = ["n", "one"].map(|name| model.get(name).unwrap().kind().to_string());
        assert_eq!(kinds, ["f32", "mxfp4"]);
    };
    for (config, expected) in [
        ("[]", "config.json: an object is expected, not an array"),
        ("{", "config.json: not JSON: EOF"),
        (r#"{"quantization":3}"#, "quantization is a number, an object is expected"),
        (r#"{"quantization":{"bits":-4}}"#, "bits of quantization is -4"),
        (
            r#"{"quantization":{"group_size":4294967296}}"#,
            "group_size of quantization is 4294967296",
        ),
        (r#"{"quantization":{"mode":4}}"#, "mode of quantization is a number"),
        (
            r#"{"quantization_config":{"quant_method":"gptq","bits":0}}"#,
            "bits is 0, a whole number from 1 on",
        ),
        (
            r#"{"quantization_config":{"quant_method":"gptq","bits":-1}}"#,
            "bits is -1, a whole number from 1 on",
        ),
        (
            r#"{"quantization_config":{"quant_method":"awq","w_bit":0}}"#,
            "w_bit is 0, a whole number from 1 on",
        ),
    ] {
        let model = with_config(&tensors, config);
        free(&model);
        for name in ["two", "g"] {
            let text = refusal(&model, name);
            assert!(text.contains(expected) && text.contains(name), "{text}");
        }
        // The caller may say what the config does not.
        let said = Expected::default().bits(4).group(64);
        assert_eq!(model.get_as("two", &said).unwrap().shape(), [3, 128]);
        let said = Expected::default().mode("gptq");
        assert_eq!(model.get_as("g", &said).unwrap().shape(), [8, 64]);
        // Nor does the file lie if an older one beside it says what it does not.
        let model = open(&[
            ("m.safetensors", file(&tensors, &[])),
            ("config.json", config.into()),
            ("quantize_config.json", r#"{"bits":4,"group_size":64}"#.into()),
        ])
        .unwrap();
        assert_eq!(model.get("g").unwrap().shape(), [8, 64]);
    }
    // Words that Python writes, and entries of other makers, are no lies.
    let quantization = r#""quantization": {"bits": 4, "group_size": 64}"#;
    for config in [
        format!("{{\"time_step_limit\": [0.0, Infinity], {quantization}}}"),
        format!("{{\"a\": NaN, \"b\": {{\"c\": -Infinity}}, {quantization}}}"),
        format!("\u{feff}{{{quantization}}}"),
        format!("{{\"bits\": \"x\", \"rope_scaling\": 3, \"mode\": [], {quantization}}}"),
        format!("{{\"quantization_config\": null, \"text_config\": {{{quantization}}}}}"),
        format!("{{\"quantization_config\": {{\"load_in_4bit\": \"no\"}}, {quantization}}}"),
    ] {
        let model = with_config(&tensors, &config);
        assert_eq!(model.get("n").unwrap().kind().to_string(), "f32");
        assert_eq!(model.get("two").unwrap().shape(), [3, 128], "{config}");
    }
    let nobody = with_config(&tensors, r#"{"quantization_config": {"quant_algo": "NVFP4"}}"#);
    free(&nobody);
    // Null is no entry, and entries of other methods are passed over.
    with_config(
        &tensors,
        r#"{"quantization_config":{"quant_method":"gptq","bits":null,"group_size":null}}"#,
    );
    with_config(
        &tensors,
        r#"{"quantization":null,"quantization_config":{"quant_method":"fp8","bits":"x"}}"#,
    );
}
