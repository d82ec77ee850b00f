use super::*;
use tilewise_core::{DType, QuantFormat};

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

/// An entry of metadata: key, number of the type, value.
type Entry<'a> = (&'a str, u32, Vec<u8>);
/// A row of the table: name, dimensions as the file has them, number of the type, offset.
type Row<'a> = (&'a str, &'a [u64], u32, u64);

/// A file, with `data` bytes after the table.
fn file(entries: &[Entry<'_>], rows: &[Row<'_>], data: usize) -> Vec<u8> {
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend((rows.len() as u64).to_le_bytes());
    bytes.extend((entries.len() as u64).to_le_bytes());
    for (key, kind, value) in entries {
        bytes.extend(text(key));
        bytes.extend(kind.to_le_bytes());
        bytes.extend(value);
    }
    for (name, dimensions, kind, offset) in rows {
        bytes.extend(text(name));
        bytes.extend((dimensions.len() as u32).to_le_bytes());
        dimensions.iter().for_each(|dimension| bytes.extend(dimension.to_le_bytes()));
        bytes.extend(kind.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
    }
    bytes.resize(bytes.len().next_multiple_of(32) + data, 0);
    bytes
}

fn refusal(bytes: &[u8]) -> String {
    Gguf::read(0, "f", bytes).unwrap_err().to_string()
}

fn read(bytes: &[u8]) -> Gguf {
    Gguf::read(0, "f", bytes).unwrap()
}

#[test]
fn tensors_are_found() {
    let rows: [Row<'_>; 4] = [
        ("a.weight", &[32, 3, 2], 8, 0),
        ("b", &[5], 0, 224),
        ("c", &[4], 99, 256),
        ("d", &[2, 1], 27, 288),
    ];
    let bytes = file(&[], &rows, 304);
    let gguf = read(&bytes);
    let start = bytes.len() - 304;
    let found: Vec<_> = gguf
        .tensors
        .iter()
        .map(|raw| (&*raw.name, raw.element.name(), &raw.shape[..], raw.bytes.clone()))
        .collect();
    assert_eq!(found[0], ("a.weight", "q8_0", &[2, 3, 32][..], start..start + 204));
    assert_eq!(found[1], ("b", "F32", &[5][..], start + 224..start + 244));
    assert_eq!(found[2], ("c", "type 99", &[4][..], start + 256..start + 288));
    assert_eq!(found[3], ("d", "I64", &[1, 2][..], start + 288..start + 304));
    assert_eq!(gguf.tensors[0].element, crate::raw::Element::Blocks(QuantFormat::Q8_0));
    assert_eq!(gguf.tensors[1].element, crate::raw::Element::Dense(DType::F32));
    let mut second = bytes.clone();
    second[4] = 2;
    assert_eq!((read(&second).version, read(&second).tensors.len()), (2, 4));
}

#[test]
fn values_are_read_where_they_lie() {
    let array = |kind: u32, count: u64, bytes: &[u8]| {
        [&kind.to_le_bytes()[..], &count.to_le_bytes(), bytes].concat()
    };
    let inner = array(4, 1, &7u32.to_le_bytes());
    let entries: [Entry<'_>; 8] = [
        ("name", 8, text("m\u{e9}")),
        ("bytes", 8, [&2u64.to_le_bytes()[..], &[b'a', 0xff]].concat()),
        ("yes", 7, vec![1]),
        ("i16", 3, (-3i16).to_le_bytes().to_vec()),
        ("f64", 12, 0.5f64.to_le_bytes().to_vec()),
        ("words", 9, array(8, 5, &["a", "b", "c", "d", "e"].map(text).concat())),
        ("nested", 9, array(9, 2, &[&inner[..], &inner].concat())),
        ("none", 9, array(8, 0, &[])),
    ];
    let bytes = file(&entries, &[], 0);
    let gguf = read(&bytes);
    let shown: Vec<_> = gguf.values(&bytes).map(|(key, value)| format!("{key} {value}")).collect();
    assert_eq!(
        shown,
        [
            "name \"m\u{e9}\"",
            "bytes \"a\u{fffd}\"",
            "yes true",
            "i16 -3",
            "f64 0.5",
            "words [\"a\", \"b\", \"c\", \"d\", and 1 more]",
            "nested [[7], [7]]",
            "none []",
        ]
    );
    assert_eq!(gguf.value("i16", &bytes).unwrap().as_u64(), None);
    assert_eq!(gguf.value("name", &bytes).unwrap().as_str(), Some("m\u{e9}"));
    assert_eq!(gguf.value("other", &bytes), None);
    let value = |key| gguf.value(key, &bytes).unwrap();
    assert_eq!(["i16", "f64"].map(|key| value(key).as_f32()), [Some(-3.0), Some(0.5)]);
    assert_eq!(["name", "yes", "words"].map(|key| value(key).as_f32()), [None; 3]);
    assert_eq!(["yes", "i16"].map(|key| value(key).as_bool()), [Some(true), None]);
    let words = value("words").as_array().unwrap();
    assert_eq!((words.len(), words.iter().last().unwrap().as_str()), (5, Some("e")));
    assert_eq!((value("none").as_array().unwrap().len(), value("name").as_array()), (0, None));
    // Whole numbers are rounded to nearest, ties to even.
    for (number, rounded) in
        [((1u64 << 24) + 1, 16_777_216.0), ((1 << 24) + 3, 16_777_220.0), (u64::MAX, 2f32.powi(64))]
    {
        assert_eq!(Value::U64(number).as_f32(), Some(rounded));
    }
    assert_eq!(Value::F64(1e300).as_f32(), Some(f32::INFINITY));
}

#[test]
fn lies_are_told_with_their_numbers() {
    assert!(
        refusal(b"GGU").contains("f: truncated: 4 bytes are expected at byte 0, the file has 3")
    );
    assert!(refusal(b"GGML\0\0\0\0").contains("no GGUF file"));
    assert!(refusal(b"GGUF\x01\0\0\0").contains("version 1 at byte 4; versions 2 and 3 are read"));
    assert!(refusal(b"GGUF\0\0\0\x03").contains("big-endian"));
    let good = file(&[], &[], 0);
    for (at, what) in [(8, "tensors at byte 8"), (16, "entries of metadata at byte 16")] {
        let mut bad = good.clone();
        bad[at..at + 8].fill(0xff);
        assert!(
            refusal(&bad).contains(&format!("18446744073709551615 {what}; at most 1048576")),
            "{what}"
        );
        bad[at..at + 8].copy_from_slice(&1000u64.to_le_bytes());
        assert!(refusal(&bad).contains("truncated"), "{what}");
    }
    let lie = |bytes: &[u8]| [&u64::MAX.to_le_bytes()[..], bytes].concat();
    for (entries, expected) in [
        (
            vec![("k", 8, lie(b"x"))],
            "value of \"k\": truncated: 18446744073709551615 bytes are expected at byte 45",
        ),
        (
            vec![("k", 9, [&4u32.to_le_bytes()[..], &lie(b"")].concat())],
            "an array of 18446744073709551615 elements at byte 37",
        ),
        (
            vec![("k", 9, [&8u32.to_le_bytes()[..], &lie(b"")].concat())],
            "truncated: 8 bytes are expected at byte",
        ),
        (
            vec![("k", 9, [9u32.to_le_bytes(), 1u32.to_le_bytes(), [0; 4]].concat().repeat(6))],
            "lies within 4 others",
        ),
        (vec![("k", 13, vec![])], "a value of type 13 at byte 33; types 0 to 12"),
        (vec![("k", 7, vec![2])], "the boolean at byte 37 is 2"),
        (
            vec![("k", 0, vec![1]), ("k", 0, vec![1])],
            "key \"k\" at byte 38 is there already, at byte 24",
        ),
        (
            vec![("general.alignment", 4, 24u32.to_le_bytes().to_vec())],
            "general.alignment is 24; a power of two",
        ),
        (vec![("general.alignment", 4, vec![0; 4])], "general.alignment is 0"),
        (vec![("general.alignment", 10, vec![32, 0, 0, 0, 0, 0, 0, 0])], "of type u32"),
    ] {
        let text = refusal(&file(&entries, &[], 0));
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn tables_that_lie_are_told_with_their_numbers() {
    let one = |dimensions: &[u64], kind: u32, offset: u64| {
        refusal(&file(&[], &[("w", dimensions, kind, offset)], 64))
    };
    let shown = "tensor \"w\" at byte 24";
    for (text, expected) in [
        (one(&[1; 5], 0, 0), "tensor \"w\" at byte 24: 5 dimensions; at most 4"),
        (
            one(&[1 << 40, 1 << 40], 0, 0),
            "[1099511627776, 1099511627776]: the product of its dimensions overflows",
        ),
        (one(&[33], 8, 0), "Q8_0 [33]: K = 33 is no multiple of 32, the block of Q8_0"),
        (one(&[128, 2], 21, 0), "K = 128 is no multiple of 256, the block of IQ3_S"),
        (one(&[256], 21, 0), "IQ3_S [256]: 110 bytes at offset 0 from byte 64; the file has 128"),
        (one(&[17], 0, 0), "F32 [17]: 68 bytes at offset 0 from byte 64; the file has 128 bytes"),
        (one(&[16], 0, 32), "64 bytes at offset 32 from byte 64; the file has 128 bytes"),
        (one(&[1], 0, 16), "its offset 16 is no multiple of the alignment 32"),
        (one(&[1], 0, u64::MAX - 31), "4 bytes at offset 18446744073709551584"),
    ] {
        assert!(text.contains(expected) && text.contains(shown), "{text}");
    }
    let two = |a: Row<'_>, b: Row<'_>| refusal(&file(&[], &[a, b], 64));
    let text = two(("a", &[9], 0, 0), ("b", &[1], 0, 32));
    assert!(
        text.contains("tensor \"b\" at byte 128 overlaps tensor \"a\", which ends at byte 132"),
        "{text}"
    );
    let text = two(("a", &[1], 0, 0), ("a", &[1], 0, 32));
    assert!(text.contains("tensor \"a\" at byte 57 is there already, at byte 24"), "{text}");
}

#[test]
fn every_truncation_is_refused() {
    let bytes = file(&[("k", 8, text("value"))], &[("a", &[32, 2], 8, 0)], 68);
    assert!(refusal(&[]).contains("f: an empty file"));
    for length in 1..bytes.len() {
        assert!(refusal(&bytes[..length]).contains("truncated"), "{length}");
    }
    assert_eq!(read(&bytes).tensors.len(), 1);
}

#[test]
fn alignment_is_the_files() {
    let entries: [Entry<'_>; 1] = [("general.alignment", 4, 8u32.to_le_bytes().to_vec())];
    let rows: [Row<'_>; 2] = [("a", &[1], 0, 0), ("b", &[1], 0, 8)];
    let gguf = read(&file(&entries, &rows, 64));
    assert_eq!(gguf.tensors[1].bytes.start - gguf.tensors[0].bytes.start, 8);
    assert!(gguf.tensors[0].bytes.start.is_multiple_of(8));
}

#[test]
fn no_rows_or_columns_are_a_tensor_and_too_many_none() {
    let of_type = |dimensions: &[u64], kind| {
        crate::Model::from_bytes("f.gguf", file(&[], &[("w", dimensions, kind, 0)], 0)).unwrap()
    };
    let model = |dimensions: &[u64]| of_type(dimensions, 8);
    for kind in [8, 21, 40] {
        let planes = of_type(&[0, 1 << 62], kind).get("w").unwrap().planes(&mut |_, _| {});
        assert!(planes.unwrap().iter().all(Vec::is_empty));
    }
    assert_eq!(model(&[0, 3]).get("w").unwrap().sizes(), Ok(vec![0, 0]));
    assert_eq!(model(&[u64::MAX - 31, 0]).get("w").unwrap().rows(0..0).map(|none| none.n()), Ok(0));
    let text = model(&[0, 1 << 62, 5]).get("w").unwrap().sizes().unwrap_err().to_string();
    assert!(
        text.contains(
            "f.gguf: \"w\": overflow: the rows of [5, 4611686018427387904, 0] cannot be counted"
        ),
        "{text}"
    );
}

/// A matrix or a stack of NVFP4 under the name `w.weight`, and the numbers of a tensor beside it.
fn scaled(matrices: &[u64], scale: (&str, &[u64], u32), numbers: &[f32]) -> crate::Model {
    let dimensions = [&[64, 1][..], matrices].concat();
    let weights = 36 * matrices.iter().product::<u64>().next_multiple_of(8);
    let rows = [("w.weight", &dimensions[..], 40, 0), (scale.0, scale.1, scale.2, weights)];
    let mut bytes = file(&[], &rows, weights as usize + 64);
    let at = bytes.len() - 64;
    for (i, number) in numbers.iter().enumerate() {
        bytes[at + 4 * i..][..4].copy_from_slice(&number.to_le_bytes());
    }
    crate::Model::from_bytes("f.gguf", bytes).unwrap()
}

#[test]
fn scales_beside_nvfp4_are_factors() {
    for (matrices, scale, numbers, factor, format) in [
        (&[][..], ("w.scale", &[1][..], 0), &[0.5][..], Some(0.5), "nvfp4"),
        (&[], ("w.weight.scale", &[1], 0), &[0.5], Some(0.5), "nvfp4"),
        (&[], ("w.scale", &[], 0), &[-0.0], Some(0.0), "nvfp4"),
        (&[3], ("w.scale", &[3], 0), &[2.0; 3], Some(2.0), "nvfp4"),
        (&[3], ("w.scale", &[1], 0), &[2.0], Some(2.0), "nvfp4"),
        (&[3, 2], ("w.scale", &[3, 2], 0), &[1.0, 1.0, 1.0, 1.0, 1.0, 2.0], None, "int8-g16"),
        (&[], ("v.scale", &[1], 0), &[0.5], None, "nvfp4"),
        (&[], ("w.input_scale", &[1], 0), &[0.5], None, "nvfp4"),
    ] {
        let model = scaled(matrices, scale, numbers);
        let w = model.get("w").unwrap();
        let found = (w.factor(), w.kind().to_string(), w.stored());
        assert_eq!(found, (factor, format.to_owned(), "NVFP4"), "{scale:?}");
        let is_own = scale.0.starts_with("w.") && scale.0 != "w.input_scale";
        assert_eq!(model.tensors().len(), if is_own { 1 } else { 2 });
        assert!(w.quantized().is_ok());
    }
    for (matrices, scale, numbers, why) in [
        (&[][..], ("w.scale", &[2][..], 0), &[1.0; 2][..], "w.scale F32 [2] at byte"),
        (&[], ("w.scale", &[1], 1), &[1.0], "w.scale F16 [1] at byte 416; one F32 is expected"),
        (&[], ("w.scale", &[1], 26), &[1.0], "; one F32 is expected"),
        (&[], ("w.scale", &[0], 0), &[], "; one F32 is expected"),
        (&[3], ("w.scale", &[2], 0), &[1.0; 2], "; one F32 is expected, or 3 of them"),
        (&[3], ("w.scale", &[3], 0), &[1.0, 2.0, f32::NAN], "w.scale at byte 424: NaN is no"),
        (&[], ("w.scale", &[1], 0), &[f32::INFINITY], "w.scale at byte 416: inf is no factor"),
        (&[], ("w.scale", &[64], 40), &[], "w.scale NVFP4 [64] at byte"),
    ] {
        let model = scaled(matrices, scale, numbers);
        let error = model.get("w").unwrap().quantized().unwrap_err().to_string();
        assert!(error.starts_with("f.gguf: \"w\": ") && error.contains(why), "{error}");
    }
}

#[test]
fn two_scales_beside_nvfp4_are_refused() {
    let scales = [("w.scale", &[1u64][..], 0, 288), ("w.weight.scale", &[1], 0, 320)];
    let bytes = file(&[], &[("w.weight", &[64, 1], 40, 0), scales[0], scales[1]], 384);
    let model = crate::Model::from_bytes("f.gguf", bytes).unwrap();
    let error = model.get("w").unwrap().quantized().unwrap_err().to_string();
    assert!(error.contains("two scales of one matrix"), "{error}");
}

#[test]
fn types_that_are_not_read_have_their_whole_names() {
    let bytes = file(&[], &[("w.weight", &[256], 15, 0)], 320);
    let model = crate::Model::from_bytes("f.gguf", bytes).unwrap();
    let error = model.get("w").unwrap_err().to_string();
    assert!(error.ends_with("the nearest of 1 is \"w.weight\""), "{error}");
}

/// The scale may lie in another part of the model than the weights.
#[test]
fn scales_beside_nvfp4_lie_in_any_part() {
    let part = |number: u16, row: Row<'_>, data: usize| {
        let entries: [Entry<'_>; 3] = [
            ("split.no", 2, number.to_le_bytes().to_vec()),
            ("split.count", 2, 2u16.to_le_bytes().to_vec()),
            ("split.tensors.count", 5, 2i32.to_le_bytes().to_vec()),
        ];
        file(&entries, &[row], data)
    };
    let mut scale = part(0, ("w.scale", &[1], 0, 0), 32);
    let at = scale.len() - 32;
    scale[at..at + 4].copy_from_slice(&0.5f32.to_le_bytes());
    let weights = part(1, ("w.weight", &[64, 1], 40, 0), 64);
    let names = ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"].map(str::to_owned);
    let files = crate::Files::Memory(names.into_iter().zip([scale, weights]).collect());
    let model = crate::Model::open_in(files, "m-00002-of-00002.gguf").unwrap();
    let w = model.get("w").unwrap();
    assert_eq!((w.factor(), w.file()), (Some(0.5), "m-00002-of-00002.gguf"));
}
