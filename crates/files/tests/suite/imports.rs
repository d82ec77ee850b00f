//! GPTQ and AWQ against numbers that are packed here by their definitions.

use crate::support::{Tensor, file, open, refusal, tensor, with_config};
use half::f16;
use safetensors::tensor::Dtype::{F16, I32};
use tilewise_core::Error;
use tilewise_core::quant::dequantize;
use tilewise_files::{Expected, Model, TensorKind};

/// A config that tells the version of GPTQ, and nothing else.
const GPTQ: &str = r#"{"quantization_config":{"quant_method":"gptq"}}"#;

/// A matrix before it is packed: `[n][k]` codes and `[group][n]` scales and zeros.
struct Matrix {
    n: usize,
    k: usize,
    bits: u32,
    group_of: Vec<usize>,
    codes: Vec<Vec<u32>>,
    scales: Vec<Vec<f16>>,
    zeros: Vec<Vec<u32>>,
}

impl Matrix {
    fn new(n: usize, group_of: Vec<usize>, bits: u32, zeros: std::ops::Range<u32>) -> Self {
        let (k, groups) = (group_of.len(), group_of.iter().max().unwrap() + 1);
        let mut state = 1u32;
        let mut random = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 12
        };
        let codes =
            (0..n).map(|_| (0..k).map(|_| random() & ((1 << bits) - 1)).collect()).collect();
        let scale = |number: u32| f16::from_f32(number as f32 / 1e6);
        let scales = (0..groups).map(|_| (0..n).map(|_| scale(random())).collect()).collect();
        let span = zeros.end - zeros.start;
        let zeros =
            (0..groups).map(|_| (0..n).map(|_| zeros.start + random() % span).collect()).collect();
        Matrix { n, k, bits, group_of, codes, scales, zeros }
    }

    /// The weights in f32, in which they are exact.
    fn weights(&self) -> Vec<f32> {
        let weight = |n: usize, k: usize| {
            let group = self.group_of[k];
            self.scales[group][n].to_f32() * (self.codes[n][k] as f32 - self.zeros[group][n] as f32)
        };
        (0..self.n).flat_map(|n| (0..self.k).map(move |k| weight(n, k))).collect()
    }

    fn scales(&self) -> Tensor {
        let bytes = self.scales.iter().flatten().flat_map(|scale| scale.to_le_bytes()).collect();
        ("w.scales".into(), F16, vec![self.scales.len(), self.n], bytes)
    }

    fn gptq(&self, short: u32, with_order: bool) -> Vec<Tensor> {
        let per = 32 / self.bits as usize;
        let column = |k: usize| (0..self.n).map(move |n| self.codes[n][k]);
        let qweight = (0..self.k / per).flat_map(|row| {
            (0..self.n).map(move |n| {
                word(self.bits, (0..per).map(|j| column(row * per + j).nth(n).unwrap()))
            })
        });
        let zeros = self.zeros.iter().flat_map(|zeros| {
            zeros.chunks(per).map(|zeros| word(self.bits, zeros.iter().map(|zero| zero - short)))
        });
        let mut tensors = vec![
            words("w.qweight", &[self.k / per, self.n], qweight),
            words("w.qzeros", &[self.scales.len(), self.n / per], zeros),
            self.scales(),
        ];
        if with_order {
            tensors.push(words(
                "w.g_idx",
                &[self.k],
                self.group_of.iter().map(|&group| group as u32),
            ));
        }
        tensors
    }

    fn awq(&self) -> Vec<Tensor> {
        const ORDER: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];
        let line = |numbers: Vec<u32>| {
            let words: Vec<u32> = numbers
                .chunks(8)
                .map(|eight| word(4, ORDER.into_iter().map(|i| eight[i])))
                .collect();
            words
        };
        let qweight =
            (0..self.k).flat_map(|k| line((0..self.n).map(|n| self.codes[n][k]).collect()));
        let zeros = self.zeros.iter().flat_map(|zeros| line(zeros.clone()));
        vec![
            words("w.qweight", &[self.k, self.n / 8], qweight),
            words("w.qzeros", &[self.scales.len(), self.n / 8], zeros),
            self.scales(),
        ]
    }
}

fn word(bits: u32, codes: impl Iterator<Item = u32>) -> u32 {
    codes.enumerate().fold(0, |word, (i, code)| word | code << (i as u32 * bits))
}

fn words(name: &str, shape: &[usize], words: impl Iterator<Item = u32>) -> Tensor {
    (name.into(), I32, shape.to_vec(), words.flat_map(u32::to_le_bytes).collect())
}

/// The weights that are read, their columns put back in order.
fn read(model: &Model) -> Vec<f32> {
    let tensor = model.get("w").unwrap();
    let weights = dequantize(&tensor.quantized().unwrap());
    let Some(order) = tensor.order().unwrap() else { return weights };
    let mut sorted = vec![0.0; weights.len()];
    for (i, weight) in weights.iter().enumerate() {
        sorted[i / order.len() * order.len() + order[i % order.len()] as usize] = *weight;
    }
    sorted
}

fn ascending(k: usize, group: usize) -> Vec<usize> {
    (0..k).map(|k| k / group).collect()
}

#[test]
fn gptq_of_all_groups() {
    for (bits, k, group) in [
        (4, 128, 64),
        (4, 320, 128),
        (4, 192, 192),
        (4, 384, 192),
        (8, 96, 32),
        (8, 288, 96),
        (8, 160, 64),
        (4, 1024, 256),
        (2, 48, 16),
        (4, 48, 16),
        (2, 144, 48),
    ] {
        for (version, short) in [("gptq", 1), ("gptq_v2", 0)] {
            let matrix = Matrix::new(16, ascending(k, group), bits, short..(1 << bits) + short);
            let config = format!(
                r#"{{"quantization_config":{{"quant_method":"gptq","bits":{bits},
                "group_size":{group},"checkpoint_format":"{version}"}}}}"#
            );
            for with_order in [false, true] {
                let model = with_config(&matrix.gptq(short, with_order), &config);
                assert!(
                    read(&model) == matrix.weights(),
                    "{bits} bits, K = {k}, {group}, {version}"
                );
                assert_eq!(model.get("w").unwrap().order(), Ok(None));
                assert_eq!((model.tensors().len(), model.get("w").unwrap().stored()), (1, "gptq"));
            }
        }
    }
}

#[test]
fn gptq_of_one_group() {
    let matrix = Matrix::new(8, ascending(128, 128), 4, 1..17);
    for config in [r#"{"bits":4,"group_size":-1}"#, GPTQ] {
        assert!(read(&with_config(&matrix.gptq(1, true), config)) == matrix.weights(), "{config}");
    }
}

/// Both versions have the same shapes, and zeros that differ by 1.
#[test]
fn without_a_config_the_version_of_gptq_is_asked_for() {
    for (mode, short, other) in [("gptq", 1, "gptq_v2"), ("GPTQ_v2", 0, "gptq")] {
        let matrix = Matrix::new(8, ascending(128, 64), 4, short..16 + short);
        let tensors = matrix.gptq(short, true);
        let silent = with_config(&tensors, "{}");
        let unsaid = silent.get("w").unwrap();
        assert!(
            matches!(unsaid.kind(), TensorKind::Unclear(Error::Misuse(_))),
            "{}",
            unsaid.kind()
        );
        assert!(refusal(&silent, "w").contains("name the mode, gptq or gptq_v2"));
        let expected = Expected::default().mode(mode);
        let weights = |model: &Model| {
            let tensor = model.get_as("w", &expected.clone().bits(4).group(64))?;
            Ok::<_, Error>(dequantize(&tensor.quantized()?))
        };
        assert!(weights(&silent).unwrap() == matrix.weights(), "{mode}");
        let config = |version: &str| {
            with_config(
                &tensors,
                &format!(
                    r#"{{"quantization_config":{{"quant_method":"gptq",
                    "checkpoint_format":"{version}"}}}}"#
                ),
            )
        };
        // The caller may know better than the config.
        for version in [&*mode.to_lowercase(), other] {
            assert!(weights(&config(version)).unwrap() == matrix.weights(), "{mode}, {version}");
        }
    }
}

#[test]
fn modes_that_no_file_or_this_file_has_not() {
    let gptq = with_config(&Matrix::new(8, ascending(128, 64), 4, 1..17).gptq(1, false), GPTQ);
    let error = |expected: Expected| gptq.get_as("w", &expected).unwrap_err();
    let any = Expected::default;
    for impossible in [any().bits(7), any().mode("exl2"), any().mode("awq").bits(8)] {
        let error = error(impossible.clone());
        let text =
            format!("no format has {impossible}; bits may be 2, 3, 4, 5, 6, 8, modes affine, ");
        assert!(matches!(error, Error::Misuse(ref why) if why.contains(&text)), "{error}");
    }
    for other in [any().mode("awq"), any().mode("mxfp4"), any().bits(8)] {
        assert!(error(other).to_string().contains("contradiction: "));
    }
    assert!(gptq.get_as("w", &any().mode("affine")).is_ok());
}

#[test]
fn columns_are_sorted_by_their_groups() {
    for (bits, k, group) in [(4u32, 256usize, 64usize), (8, 160, 32), (4, 320, 128)] {
        // A permutation: 7 and these K have no common factor.
        let group_of = (0..k).map(|i| i * 7 % k / group).collect();
        let matrix = Matrix::new(24, group_of, bits, 1..(1 << bits) + 1);
        let config = format!(r#"{{"bits":{bits},"group_size":{group}}}"#);
        let model = with_config(&matrix.gptq(1, true), &config);
        assert!(read(&model) == matrix.weights(), "{bits} bits, K = {k}, {group}");
        let order = model.get("w").unwrap().order().unwrap().unwrap();
        assert!(order.iter().map(|&k| matrix.group_of[k as usize]).is_sorted());
    }
}

#[test]
fn groups_that_no_group_can_have() {
    let mut matrix = Matrix::new(8, ascending(128, 64), 4, 1..17);
    let error = |matrix: &Matrix| {
        let model = with_config(&matrix.gptq(1, true), GPTQ);
        let tensor = model.get("w").unwrap();
        let error = tensor.order().unwrap_err();
        assert_eq!(tensor.quantized(), Err(error.clone()));
        assert!(matches!(error, Error::File { .. }), "{error}");
        error.to_string()
    };
    matrix.group_of[64] = 0;
    assert!(error(&matrix).contains("group 0 has more than its 64 columns, at column 64"));
    assert!(error(&matrix).contains("m.safetensors: w.g_idx at byte "));
    matrix.group_of[64] = 2;
    assert!(error(&matrix).contains("g_idx of column 64 is 2, of 2 groups"));
}

#[test]
fn awq_of_all_groups() {
    for (k, group) in [(128, 64), (192, 192), (320, 64), (512, 128)] {
        let matrix = Matrix::new(16, ascending(k, group), 4, 0..16);
        let config = format!(
            r#"{{"quantization_config":{{"quant_method":"awq","bits":4,"group_size":{group},
            "version":"gemm"}}}}"#
        );
        let model = with_config(&matrix.awq(), &config);
        assert!(read(&model) == matrix.weights(), "K = {k}, {group}");
        assert_eq!(model.get("w").unwrap().stored(), "awq");
        assert!(read(&with_config(&matrix.awq(), "{}")) == matrix.weights());
    }
}

#[test]
fn contradictions_are_told_with_their_numbers() {
    let matrix = Matrix::new(16, ascending(128, 64), 4, 1..16);
    let (gptq, awq, unordered) = (matrix.gptq(1, true), matrix.awq(), matrix.gptq(1, false));
    for (tensors, config, expected) in [
        (&gptq, r#"{"bits":8,"group_size":64}"#, "config.json says 8 bits, but the shapes have 4"),
        (
            &gptq,
            r#"{"bits":4,"group_size":32}"#,
            "says groups of 32: K = 128 has 4 of them, but the file has 2",
        ),
        (&unordered, r#"{"bits":4,"desc_act":true}"#, "says desc_act, but g_idx is missing"),
        (
            &awq,
            r#"{"bits":4,"group_size":64}"#,
            "config.json says GPTQ, but the shapes are those of AWQ",
        ),
        (
            &gptq,
            r#"{"quantization_config":{"quant_method":"awq"}}"#,
            "config.json says AWQ, but the shapes are those of GPTQ",
        ),
    ] {
        let text = refusal(&with_config(tensors, config), "w");
        assert!(text.contains(expected) && text.contains("w.qweight I32"), "{text}");
    }
    let older = open(&[
        ("m.safetensors", file(&gptq, &[])),
        ("quantize_config.json", r#"{"bits":8}"#.into()),
    ])
    .unwrap();
    assert!(
        refusal(&older, "w").contains("quantize_config.json says 8 bits, but the shapes have 4")
    );
    let foreign = [&awq[..], &gptq[3..]].concat();
    assert!(
        refusal(&with_config(&foreign, "{}"), "w")
            .contains("g_idx belongs to GPTQ; the shapes are AWQ's")
    );
    let model = with_config(&gptq, GPTQ);
    let expected = Expected::default().bits(8);
    let text = model.get_as("w", &expected).unwrap_err().to_string();
    assert!(text.contains("the arguments: 8 bits; the file: affine-4bit"), "{text}");
    let expected = Expected::default().bits(4);
    assert!(matches!(model.get_as("w", &expected).unwrap().kind(), TensorKind::Quantized(_)));
}

#[test]
fn the_size_of_groups_may_be_expected() {
    // The last group has fewer columns, so that shapes do not tell; or blocks divide a group.
    for (bits, k, group) in [(8, 160, 64), (4, 192, 192)] {
        let matrix = Matrix::new(16, ascending(k, group), bits, 1..(1 << bits) + 1);
        let tensors = matrix.gptq(1, true);
        let silent = with_config(&tensors, GPTQ);
        let expected = |group| Expected::default().group(group);
        let read = silent.get_as("w", &expected(group as u32)).unwrap();
        assert!(dequantize(&read.quantized().unwrap()) == matrix.weights(), "K = {k}, {group}");
        for wrong in [0, 32] {
            let text = silent.get_as("w", &expected(wrong)).unwrap_err().to_string();
            let part = format!("the arguments say groups of {wrong}: K = {k} has ");
            assert!(text.contains(&part), "{text}");
        }
        let said = with_config(&tensors, &format!(r#"{{"bits":{bits},"group_size":{group}}}"#));
        assert!(said.get_as("w", &expected(group as u32)).is_ok());
        let text = said.get_as("w", &expected(32)).unwrap_err().to_string();
        assert!(
            text.contains("the arguments say groups of 32, but config.json says groups of "),
            "{text}"
        );
    }
}

#[test]
fn shapes_that_are_neither_are_refused() {
    let with = |qweight: &[usize], qzeros: &[usize], scales: &[usize], expected: &str| {
        let tensors = [
            tensor("w.qweight", I32, qweight),
            tensor("w.qzeros", I32, qzeros),
            tensor("w.scales", F16, scales),
        ];
        let text = refusal(&with_config(&tensors, "{}"), "w");
        assert!(text.contains(expected) && text.contains("m.safetensors: \"w\""), "{text}");
    };
    with(&[8, 16], &[1, 3], &[1, 16], "N = 16 with 3 words of zeros is no GPTQ of 2, 3,");
    with(&[12, 32], &[1, 5], &[1, 32], "no GPTQ of 2, 3, 4 or 8 bits");
    with(&[11, 32], &[1, 3], &[1, 32], "11 words of codes of 3 bits; 3 words hold 32");
    with(&[8, 16], &[2, 2], &[1, 16], "1 groups of 16 columns and 2 of zeros");
    with(&[0, 16], &[1, 2], &[1, 16], "1 groups of 16 columns");
    with(&[8], &[1, 2], &[1, 16], "of two dimensions are expected");
    with(&[64, 3], &[1, 3], &[1, 16], "N = 16 with 3 words of codes and 3 of zeros is neither");
    with(&[63, 2], &[1, 2], &[1, 16], "K = 63 is no multiple of 8");
    with(&[8, 16], &[3, 2], &[3, 16], "K = 64 is no multiple of the 3 groups");
    with(&[1, 16], &[1, 2], &[1, 16], "groups of 8 and K = 8 are not whole blocks");
    let wide = [
        tensor("w.qweight", I32, &[8, 8]),
        tensor("w.qzeros", F16, &[1, 2]),
        tensor("w.scales", F16, &[1, 8]),
    ];
    assert!(refusal(&with_config(&wide, "{}"), "w").contains("qweight, qzeros and g_idx of I32"));
    let mut short = Matrix::new(8, ascending(64, 64), 4, 1..16).gptq(1, true);
    short[3] = tensor("w.g_idx", I32, &[63]);
    assert!(refusal(&with_config(&short, "{}"), "w").contains("g_idx of [64] is expected: "));
}
