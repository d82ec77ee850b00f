//! Foreign layouts against weights that each package dequantized: `tests/data/make_packages.py`.

use crate::layouts::{check, formats, refuse};
use crate::support::{Tensor, refusal, with_config};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype::{self, F16, F32, I16, I32, U8};
use std::path::{Path, PathBuf};
use tilewise_files::{Error, Expected};

fn same(_: &str, found: f32, wide: f32) -> bool {
    found.to_bits() == wide.to_bits() || found == 0.0 && wide == 0.0
}

#[test]
fn gptq() {
    for folder in ["gptq", "gptq-v2"] {
        check(
            formats(folder, same),
            &[
                ("2bit.16", "int8-g16"),
                ("2bit.32", "affine-2bit-g32-f32"),
                ("2bit.32.order", "affine-2bit-g32-f32"),
                ("3bit.128", "affine-3bit-g128-f32"),
                ("3bit.16", "int8-g16"),
                ("3bit.16.order", "int8-g16"),
                ("3bit.32", "affine-3bit-g32-f32"),
                ("3bit.32.order", "affine-3bit-g32-f32"),
                ("3bit.all", "affine-3bit-g128-f32"),
                ("4bit.16", "int8-g16"),
                ("4bit.16.order", "int8-g16"),
            ],
        );
    }
}

#[test]
fn awq_for_few_rows() {
    let format = "affine-4bit-g64-f32";
    check(formats("awq-gemv", same), &[("k192", format), ("k1024", format)]);
    let format = "affine-4bit-g32-f32";
    check(formats("awq-gemv-fast", same), &[("k64", format), ("k320", format)]);
}

#[test]
fn bitsandbytes() {
    // The package multiplies with the row's largest weight, rounds, and multiplies with 1 / 127.
    let is_close = |name: &str, found: f32, wide: f32| match name {
        "int8" => (found - wide).abs() <= wide.abs() * 2f32.powi(-22),
        _ => same(name, found, wide),
    };
    check(
        formats("bitsandbytes", is_close),
        &[
            ("nf4", "nf4-g64"),
            ("nf4.nested", "nf4-g64"),
            ("nf4.large", "nf4-g64"),
            ("nf4.stored", "nf4-g64"),
            ("nf4.stack", "nf4-g64"),
            ("fp4", "fp4-g64"),
            ("fp4.nested", "fp4-g64"),
            ("int8", "int8-g32"),
        ],
    );
}

#[test]
fn hqq() {
    check(
        formats("hqq", same),
        &[
            ("8bit", "affine-8bit-g64-f32"),
            ("4bit", "affine-4bit-g64-f32"),
            ("4bit.float", "affine-4bit-g32-f32"),
            ("4bit.rows", "affine-4bit-g64-f32"),
            ("3bit", "affine-3bit-g64-f32"),
            ("2bit", "affine-2bit-g32-f32"),
            ("1bit", "affine-2bit-g128-f32"),
        ],
    );
}

#[test]
fn gpt_oss() {
    let names = [("mlp.experts.gate_up_proj", "mxfp4"), ("mlp.experts.down_proj", "mxfp4")];
    check(formats("gpt-oss", same), &names);
    // OpenAI's own files have other names.
    let mut tensors = tensors("gpt-oss", "model.layers.0.mlp.experts.down_proj");
    let read = |tensors: &[Tensor]| with_config(tensors, "{}").get("w").unwrap().quantized();
    let own = read(&tensors).unwrap();
    tensors.iter_mut().for_each(|(name, ..)| *name = name.replace('_', "."));
    assert_eq!(read(&tensors), Ok(own));
}

fn data(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder)
}

/// The tensors of a matrix of a model, which is named `w` here.
fn tensors(folder: &str, matrix: &str) -> Vec<Tensor> {
    let bytes = std::fs::read(data(folder).join("model.safetensors")).unwrap();
    let all = SafeTensors::deserialize(&bytes).unwrap();
    let own = all.iter().filter_map(|(name, view)| {
        let leaf = name.strip_prefix(matrix)?;
        let name = (leaf.starts_with(['.', '_'])).then(|| format!("w{leaf}"))?;
        Some((name, view.dtype(), view.shape().to_vec(), view.data().to_vec()))
    });
    own.filter(|(name, ..)| matrix.contains('.') || name.matches('.').count() < 4).collect()
}

/// The change of a tensor.
enum Change<'a> {
    Gone,
    Zeros(Dtype, &'a [usize]),
    /// Other bytes, of the type and shape that were.
    Bytes(&'a [u8]),
    /// U8 of any length.
    Text(&'a str),
}
use Change::{Bytes, Gone, Text, Zeros};

/// Changes one tensor of each matrix, and compares the error. "unsupported" begins errors of what
/// is sound, but not read.
fn broken(folder: &str, cases: &[(&str, &str, Change<'_>, &str)]) {
    let config = std::fs::read_to_string(data(folder).join("config.json")).unwrap();
    for (matrix, leaf, change, words) in cases {
        let mut tensors = tensors(folder, matrix);
        let name = format!("w{leaf}");
        let old = tensors.iter().position(|tensor| tensor.0 == name);
        let old = old.map(|at| tensors.remove(at));
        match change {
            Gone => assert!(old.is_some(), "{name}"),
            Zeros(dtype, shape) => {
                let size = shape.iter().product::<usize>() * dtype.bitsize() / 8;
                tensors.push((name, *dtype, shape.to_vec(), vec![0; size]));
            }
            Bytes(bytes) => {
                let (_, dtype, shape, _) = old.unwrap();
                tensors.push((name, dtype, shape, bytes.to_vec()));
            }
            Text(text) => {
                tensors.push((name, U8, vec![text.len()], text.as_bytes().to_vec()));
            }
        }
        let text = refusal(&with_config(&tensors, &config), "w");
        let (is_sound, words) = match words.strip_prefix("unsupported ") {
            Some(words) => (true, words),
            None => (false, *words),
        };
        assert!(text.contains(words) && text.contains("m.safetensors: \"w\": "), "{text}");
        assert_eq!(text.starts_with("unsupported: "), is_sound, "{text}");
    }
}

#[test]
fn broken_bitsandbytes() {
    let state = ".weight.quant_state.bitsandbytes__nf4";
    let says = |text: &'static str| ("nf4", state, Text(text));
    let said = |(matrix, leaf, change), words| (matrix, leaf, change, words);
    broken(
        "bitsandbytes",
        &[
            ("nf4", ".weight", Zeros(U8, &[575, 1]), "575 bytes of codes for the 1152 weights of"),
            ("nf4", ".weight.absmax", Zeros(F32, &[17]), "weight.absmax of F32 [18] is expected"),
            ("nf4", ".weight.absmax", Zeros(F16, &[18]), "weight.absmax of F32 [18] is expected"),
            (
                "nf4",
                ".weight.quant_map",
                Zeros(F32, &[16]),
                "unsupported weight.quant_map has 0 for code 0, nf4-g64 has -1",
            ),
            ("nf4", ".weight.quant_map", Zeros(F32, &[15]), "quant_map of F32 [16] is expected"),
            ("nf4", ".weight.nested_absmax", Zeros(F32, &[1]), "there are no nested scales"),
            said(says("{"), "bitsandbytes__nf4 is not JSON: "),
            said(says("[]"), "bitsandbytes__nf4 in U8 is an array; an object in U8 is expected"),
            said(says(r#"{"quant_type":"fp4"}"#), "says quant_type \"fp4\"; nf4 is expected"),
            said(says(r#"{"quant_type":"nf4"}"#), "says shape null; [N, K] is expected"),
            said(says(r#"{"quant_type":"nf4","shape":[6]}"#), "says shape [6]; [N, K]"),
            said(says(r#"{"quant_type":"nf4","shape":[-6,192]}"#), "says shape [-6,192]; [N, K]"),
            said(
                says(r#"{"quant_type":"nf4","shape":[4294967296,4294967296],"blocksize":64}"#),
                "says shape [4294967296,4294967296]; [N, K]",
            ),
            said(
                says(r#"{"quant_type":"nf4","shape":[6,192],"blocksize":0}"#),
                "says blocksize 0; a whole number from 1 on is expected",
            ),
            said(
                says(r#"{"quant_type":"nf4","shape":[6,192],"blocksize":96}"#),
                "says blocksize 96; a power of two from 32 to 4096 is expected",
            ),
            said(
                says(r#"{"quant_type":"nf4","shape":[12,96],"blocksize":64}"#),
                "unsupported groups of 64 and K = 96 are not whole blocks of 64",
            ),
            (
                "nf4.nested",
                state,
                Text(
                    r#"{"quant_type":"nf4","shape":[66,256],"blocksize":64,"nested_blocksize":9}"#,
                ),
                "says nested_offset null; a number is expected",
            ),
            ("nf4.nested", ".weight.nested_absmax", Gone, "says that there are nested scales"),
            ("nf4.nested", ".weight.nested_quant_map", Gone, "nested_quant_map is missing"),
            ("nf4.nested", ".weight.nested_quant_map", Zeros(F32, &[16]), "of F32 [256] is"),
            ("nf4.nested", ".weight.nested_absmax", Zeros(F32, &[1]), "of F32 [2] is expected"),
            ("nf4.nested", ".weight.absmax", Zeros(F32, &[264]), "weight.absmax of U8 [264]"),
            ("int8", ".SCB", Zeros(F32, &[6]), "SCB of F32 [N] are expected"),
            ("int8", ".SCB", Zeros(F16, &[7]), "SCB of F32 [N] are expected"),
            ("int8", ".weight", Zeros(Dtype::I8, &[7, 40]), "unsupported groups of 40 and K = 40"),
            ("int8", ".weight_format", Bytes(&[2]), "unsupported weight_format is [2]"),
        ],
    );
}

/// Codes in a type of floats are no numbers.
#[test]
fn bitsandbytes_in_parts() {
    let mut tensors = tensors("bitsandbytes", "nf4.stored");
    tensors.retain(|(name, ..)| !name.ends_with("__nf4"));
    let model = with_config(&tensors, "{}");
    let view = model.get("w.weight").unwrap();
    assert_eq!(view.kind().to_string(), "bf16");
    let error = view.dense().unwrap_err();
    let why = "codes of bitsandbytes, whose weight.quant_state.bitsandbytes__nf4 is missing";
    assert!(matches!(&error, Error::Unsupported(text) if text.contains(why)), "{error}");
}

#[test]
fn broken_hqq() {
    broken(
        "hqq",
        &[
            ("4bit", ".shape", Gone, "shape is missing"),
            ("4bit", ".shape", Zeros(F32, &[2]), "shape is []; [N, K] in I64 is expected"),
            ("4bit", ".axis", Bytes(&[0; 4]), "unsupported its axis is 0: groups run along N"),
            ("4bit", ".axis", Zeros(U8, &[4]), "axis of one I32 is expected"),
            (
                "4bit",
                ".packing",
                Text("4bit_32"),
                "unsupported its packing is \"4bit_32\"; 8bit_u8",
            ),
            ("4bit", ".packing", Gone, "packing is missing"),
            ("4bit", ".group_size", Bytes(&[0; 4]), "its group_size is 0; a number from 1 on"),
            ("4bit", ".group_size", Bytes(&[100, 0, 0, 0]), "no whole groups of 100"),
            (
                "4bit",
                ".group_size",
                Bytes(&[128, 0, 0, 0]),
                "unsupported groups of 128 end within rows of 192",
            ),
            ("4bit", ".group_size", Bytes(&[16, 0, 0, 0]), "scale of 72 floats is expected"),
            ("4bit", ".W_q", Zeros(U8, &[8, 64]), "512 bytes for 18 groups of 64 codes of 4 bits"),
            ("3bit", ".W_q", Zeros(I32, &[2, 64]), "512 bytes for 21 groups of 64 codes of 3 bits"),
            ("4bit", ".scale", Zeros(F16, &[17, 1]), "scale of 18 floats is expected"),
            ("4bit", ".zero", Zeros(I32, &[18, 1]), "zero of 18 floats is expected"),
        ],
    );
}

#[test]
fn broken_gpt_oss() {
    let (name, words) = ("model.layers.0.mlp.experts.down_proj", "blocks [.., N, K / 32, 16] and");
    broken(
        "gpt-oss",
        &[
            (name, "_scales", Zeros(U8, &[2, 64, 2]), words),
            (name, "_scales", Zeros(U8, &[2, 64, 3, 1]), words),
            (name, "_blocks", Zeros(U8, &[16]), words),
        ],
    );
}

#[test]
fn broken_gptq_and_awq() {
    broken("gptq", &[("3bit.32", ".qweight", Zeros(I32, &[8, 32]), "8 words of codes of 3 bits")]);
    refuse(&[(
        &[(".qweight", I32, &[8, 16]), (".qzeros", I32, &[2, 4]), (".scales", F16, &[2, 16])],
        r#"{"quant_method":"gptq","bits":8,"group_size":16}"#,
        &["unsupported", "groups of 16 and K = 32 are not whole blocks of 32, 64, 128"],
    )]);
    let gemv: &[(&str, Dtype, &[usize])] =
        &[(".qweight", I32, &[16, 32]), (".qzeros", I32, &[16, 1]), (".scales", F16, &[16, 8])];
    let fast: &[(&str, Dtype, &[usize])] =
        &[(".qweight", I16, &[4, 256]), (".qzeros", F16, &[8, 16]), (".scales", F16, &[8, 16])];
    let awq = |group: &str, version: &str| {
        format!(r#"{{"quant_method":"awq","group_size":{group},"version":"{version}"}}"#)
    };
    let none = &["neither a config.json nor the shapes tell the groups: name the group's size"];
    refuse(&[
        (gemv, "{}", none),
        (fast, "{}", none),
        (
            gemv,
            &awq("64", "gemv"),
            &["contradiction", "groups of 64 are said: for K = 256 they are not filled up to 8"],
        ),
        (fast, &awq("100", "gemv_fast"), &["contradiction", "groups of 100 are said"]),
        (
            gemv,
            &awq("128", "gemm"),
            &["config.json says AWQ, but the shapes are those of AWQ-GEMV"],
        ),
        (
            &[fast[0], (".qzeros", F16, &[8, 8]), fast[2]],
            &awq("128", "gemv_fast"),
            &["scales and qzeros of one shape, in floats, are expected"],
        ),
        (
            &[(".qweight", I16, &[3, 256]), fast[1], fast[2]],
            &awq("128", "gemv_fast"),
            &["3 lines of codes for N = 16 and K = 256; N / 4 lines"],
        ),
    ]);
    // The caller may name the groups, and the layout.
    for (tensors, mode) in [(gemv, "awq_gemv"), (fast, "awq_gemv_fast")] {
        let model = crate::layouts::one(tensors, "{}");
        let expected = Expected::default().group(128);
        assert!(model.get_as("w", &expected).is_ok());
        assert!(model.get_as("w", &expected.clone().mode(mode)).is_ok());
        let error = model.get_as("w", &expected.mode("gptq")).unwrap_err();
        assert!(matches!(error, Error::File { .. }), "{error}");
    }
}
