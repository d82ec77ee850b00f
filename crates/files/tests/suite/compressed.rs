//! compressed-tensors: what is refused, and codes as older versions packed them.

use crate::layouts::{configured, refuse};
use crate::support::{Tensor, refusal, tensor, with_config};
use safetensors::tensor::Dtype::{F8_E4M3, F16, F32, I8, I32, I64, U8};
use tilewise_core::quant::dequantize;
use tilewise_files::Expected;

/// A config of compressed-tensors whose only scheme has these weights.
fn scheme(weights: &str) -> String {
    format!(
        r#"{{"quant_method":"compressed-tensors","format":"pack-quantized","config_groups":
        {{"group_0":{{"targets":["Linear"],"weights":{weights}}}}}}}"#
    )
}

#[test]
fn broken_compressed_tensors() {
    let (codes, scale) = (".weight_packed", ".weight_scale");
    let (zeros, shape, g_idx) = (".weight_zero_point", ".weight_shape", ".weight_g_idx");
    let four = (codes, I32, &[32, 16][..]);
    let group = &scheme(r#"{"num_bits":4,"group_size":32,"strategy":"group"}"#);
    let asymmetric =
        &scheme(r#"{"num_bits":4,"group_size":32,"strategy":"group","symmetric":false}"#);
    refuse(&[
        (
            &[four, (scale, F16, &[32, 4])],
            "{}",
            &["neither weight_shape nor a config.json tells the bits of codes"],
        ),
        (&[four, (scale, F16, &[32, 3])], group, &["[32, 128] have scales [32, 3]"]),
        (&[four, (scale, F16, &[31, 4])], group, &["have scales [31, 4]"]),
        (
            &[four, (scale, F16, &[32, 2])],
            group,
            &["config.json says 4 bits, strategy group, groups of 32, ", "4 bits, groups of 64"],
        ),
        (&[four, (scale, F16, &[32, 4])], asymmetric, &["with zeros, ", "the tensors have 4 bits"]),
        (
            &[four, (scale, F16, &[32, 4])],
            &scheme(r#"{"num_bits":4,"group_size":32,"actorder":"group"}"#),
            &["groups of 32, with weight_g_idx, pack-quantized, but the tensors have 4 bits"],
        ),
        (
            &[four, (scale, F16, &[32, 4])],
            &group.replace("pack-quantized", "int-quantized"),
            &["int-quantized, but the tensors have 4 bits, groups of 32, packed"],
        ),
        (
            &[four, (scale, F16, &[32, 4])],
            &scheme(r#"{"num_bits":"4","group_size":32,"type":"float"}"#),
            &["contradiction: config.json says 4 bits", ", float, "],
        ),
        (
            &[four, (scale, F16, &[32, 4])],
            &group.replace(
                r#""config_groups""#,
                r#""transform_config":{"config_groups":{"a":{"apply":[{"location":"input"}]}}},
                "config_groups""#,
            ),
            &["unsupported", "config.json says transform_config, which is not read"],
        ),
        (
            &[(codes, U8, &[4, 24]), (scale, U8, &[4, 1])],
            &group.replace("pack-quantized", "mxfp6-pack-quantized"),
            &["unsupported", "format \"mxfp6-pack-quantized\", which is not read"],
        ),
        (
            &[four, (scale, F16, &[32, 4]), (zeros, I32, &[3, 4])],
            asymmetric,
            &["zeros of I8 like weight_scale, or of I32 [4, 4], are expected"],
        ),
        (
            &[four, (scale, F16, &[32, 4]), (shape, I32, &[2])],
            group,
            // The pattern of the tests makes other extents.
            &["weight_shape says"],
        ),
        (&[four, (scale, F16, &[32, 4]), (shape, F32, &[2])], group, &["weight_shape of I64"]),
        (
            &[four, (scale, F16, &[32, 4]), (zeros, I8, &[32, 4])],
            asymmetric,
            &["zero 1 is 36, no code of 4 bits"],
        ),
        (
            &[four, (scale, F16, &[32, 4]), (g_idx, I32, &[64])],
            group,
            &["weight_g_idx of I32 [128] is expected"],
        ),
        (&[four, (scale, I32, &[32, 4])], group, &["unsupported", "scales in I32 are not read"]),
        (
            &[(codes, I64, &[32, 16]), (scale, F16, &[32, 4])],
            group,
            &["unsupported", "in types that are not read", "w.weight_packed I64 [32, 16]"],
        ),
        (
            &[four, (scale, F16, &[32, 4])],
            &scheme(r#"{"num_bits":4,"strategy":"attn_head"}"#),
            &["unsupported", "config.json says strategy \"attn_head\", which is not read"],
        ),
        (
            &[four, (scale, F16, &[32, 4])],
            &group.replace("pack-quantized", "marlin-24"),
            &["unsupported", "config.json says format \"marlin-24\", which is not read"],
        ),
        (
            &[four, (scale, F16, &[32, 4])],
            &group.replace("Linear", "w").replace("}}}}", r#"}}},"ignore":["w"]}"#),
            &["contradiction: config.json says that it is not quantized"],
        ),
        (
            &[(codes, U8, &[4, 16]), (scale, F8_E4M3, &[4, 2])],
            "{}",
            &["weight_global_scale is missing"],
        ),
        (
            &[
                (codes, U8, &[4, 16]),
                (scale, F8_E4M3, &[4, 3]),
                (".weight_global_scale", F32, &[1]),
            ],
            "{}",
            &["these are not nvfp4 of one shape"],
        ),
        (
            &[(codes, U8, &[4, 16]), (scale, U8, &[4, 2])],
            "{}",
            &["these are not mxfp4 of one shape"],
        ),
        (
            &[(".weight", I8, &[4, 32]), (scale, F32, &[3])],
            "{}",
            &["no blocks of [4, 32] have scales [3]"],
        ),
        (
            &[(".weight", I8, &[4, 24]), (scale, F32, &[4])],
            "{}",
            &["unsupported", "K = 24 are not whole blocks of 16, 32, 128"],
        ),
    ]);
    for (weights, part) in [
        (r#"{"num_bits":0}"#, "num_bits is 0, a whole number from 1 on"),
        (r#"{"group_size":-2}"#, "group_size is -2, a whole number"),
        (r#"{"block_structure":"128"}"#, "block_structure is \"128\", [rows, columns]"),
        ("3", "weights is a number, an object is expected"),
    ] {
        let text = configured(&scheme(weights));
        assert!(text.contains(part), "{text}");
    }
    let text = configured(r#"{"quant_method":"compressed-tensors","config_groups":{"a":1}}"#);
    assert!(text.contains("a of config_groups is a number"), "{text}");
}

/// Patterns in targets are not matched: the tensors tell which scheme a matrix has. If they fit
/// several, and mean other weights in each, it is not read.
#[test]
fn schemes_that_tensors_do_not_tell_apart() {
    let schemes = |first: &str, second: &str, target: &str| {
        format!(
            r#"{{"quant_method":"compressed-tensors","config_groups":
            {{"a":{{"targets":["re:.*a"],"weights":{first}}},
            "b":{{"targets":["{target}"],"weights":{second}}}}}}}"#
        )
    };
    let blocks = |target: &str| {
        let of = |size| format!(r#"{{"strategy":"block","block_structure":{size}}}"#);
        schemes(&of("[128,128]"), &of("[100,96]"), target)
    };
    let bits =
        schemes(r#"{"num_bits":4,"group_size":64}"#, r#"{"num_bits":8,"group_size":32}"#, "re:.*w");
    let fp8 = |k: usize, across: usize| {
        [tensor("w.weight", F8_E4M3, &[130, k]), tensor("w.weight_scale", F32, &[2, across])]
    };
    let packed =
        [tensor("w.weight_packed", I32, &[32, 16]), tensor("w.weight_scale", F16, &[32, 2])];
    let open = |tensors: &[Tensor], config: &str| {
        with_config(tensors, &format!(r#"{{"quantization_config":{config}}}"#))
    };
    let text = refusal(&open(&fp8(160, 2), &blocks("re:.*w")), "w");
    assert!(text.contains("unsupported") && text.contains("several schemes"), "{text}");
    // The name of the module, and another number of scales, tell the scheme.
    for (tensors, target) in [(fp8(160, 2), "w"), (fp8(320, 4), "re:.*w")] {
        let read = open(&tensors, &blocks(target)).get("w").unwrap().quantized().unwrap();
        let scale = |at: usize| {
            let bytes = &tensors[1].3[4 * at..][..4];
            f32::from_le_bytes(bytes.try_into().unwrap())
        };
        let (k, wide) = (read.k(), dequantize(&read));
        let across = k.div_ceil(96);
        for (row, column) in [(99, 95), (99, 96), (100, 95), (100, 96)] {
            let code = tensors[0].3[row * k + column];
            let expected = scale(row / 100 * across + column / 96) * decoded(code);
            assert_eq!(wide[row * k + column], expected, "{row} {column}");
        }
    }
    let model = open(&packed, &bits);
    let text = refusal(&model, "w");
    assert!(text.contains("tells the bits of codes: name them"), "{text}");
    let known = model.get_as("w", &Expected::default().bits(8)).unwrap();
    assert_eq!(known.shape(), [32, 64]);
}

/// A positive code of e4m3.
fn decoded(code: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(code >> 3), f32::from(code & 7));
    match exponent {
        0 => mantissa * 2f32.powi(-9),
        _ => (8.0 + mantissa) * 2f32.powi(exponent - 10),
    }
}

/// Before version 0.20 of compressed-tensors, no code lay in two words.
#[test]
fn codes_in_whole_words() {
    let (n, k) = (20usize, 96usize);
    for bits in [3u32, 5, 6, 7] {
        let most = (1 << bits) - 1;
        let code = |row: usize, column: usize| (row * 37 + column * 11 + 5) as u32 & most;
        // Words of some lines of codes.
        let words = |is_whole: bool, lines: &[Vec<u32>]| {
            let mut packed = Vec::new();
            for line in lines {
                let per = if is_whole { 32 / bits as usize } else { 32 };
                for codes in line.chunks(per) {
                    let bytes = codes.iter().enumerate();
                    let all = bytes.fold([0u64; 4], |mut all, (i, &code)| {
                        let first = i * bits as usize;
                        all[first / 64] |= u64::from(code) << (first % 64);
                        if first % 64 + bits as usize > 64 {
                            all[first / 64 + 1] |= u64::from(code) >> (64 - first % 64);
                        }
                        all
                    });
                    let length = (codes.len() * bits as usize).div_ceil(32);
                    let all = all.iter().flat_map(|two| two.to_le_bytes());
                    packed.extend(all.take(4 * length));
                }
            }
            packed
        };
        let rows: Vec<Vec<u32>> = (0..n).map(|n| (0..k).map(|k| code(n, k)).collect()).collect();
        let zeros: Vec<Vec<u32>> = (0..3).map(|g| (0..n).map(|n| code(n, g)).collect()).collect();
        let model = |is_whole: bool, quantization: &str| {
            let packed = words(is_whole, &rows);
            // Words of zeros go down, groups across.
            let own = words(is_whole, &zeros);
            let down = own.len() / 12;
            let turned =
                (0..3 * down).flat_map(|at| own[4 * (at % 3 * down + at / 3)..][..4].to_vec());
            let shape = [n as u64, k as u64].iter().flat_map(|e| e.to_le_bytes()).collect();
            let tensors = [
                ("w.weight_packed".into(), I32, vec![n, packed.len() / 4 / n], packed),
                tensor("w.weight_scale", F16, &[n, 3]),
                ("w.weight_zero_point".into(), I32, vec![down, 3], turned.collect()),
                ("w.weight_shape".into(), I64, vec![2], shape),
            ];
            with_config(&tensors, &format!(r#"{{"quantization_config":{quantization}}}"#))
        };
        let said = scheme(&format!(r#"{{"num_bits":{bits},"group_size":32,"symmetric":false}}"#));
        let read = |is_whole| model(is_whole, &said).get("w").unwrap().quantized().unwrap();
        assert_eq!(read(true), read(false), "{bits}");
        let scale = tensor("w.weight_scale", F16, &[1]).3;
        let scale = half::f16::from_le_bytes([scale[0], scale[1]]).to_f32();
        let second = scale * (code(0, 1) as f32 - code(0, 0) as f32);
        assert_eq!(dequantize(&read(true))[1], second, "{bits}");
        if bits == 7 {
            // Codes of 8 bits have these shapes.
            assert!(
                refusal(&model(true, "{}"), "w").contains("tells the bits of codes: name them")
            );
        }
    }
}
